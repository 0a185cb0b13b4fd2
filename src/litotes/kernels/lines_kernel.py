"""From products to weights by straight lines, block by block, and what walks need besides.

A row's weights follow from a straight line through its products p = query · key. With u = a p + b
(of entmax the positive part alone):

    softmax, top_k    w = 2^u        slope s = w
    entmax            w = u^β        slope s = u^(β−1) = w^(2−α)       β = 1 / (α − 1)
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.row_weights import LOG2_E, SMALLEST, quick_log2

LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def first_number(TENSOR, start, stride, head, HEAD_WIDTH: tl.constexpr):
    """Where an attention head's part of a text begins: from there on, places are short numbers."""
    return TENSOR + start.to(tl.int64) * stride + head * HEAD_WIDTH


@triton.jit
def load_part(part, number, live, stride, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr):
    """Some rows of such a part, 0 where there are none. (row, WIDTH)"""
    column = tl.arange(0, WIDTH)[None, :]
    at = part + (number[:, None] * stride + column)
    return tl.load(at, mask=live[:, None] & (column < HEAD_WIDTH), other=0.0)


@triton.jit
def store_part(part, rows, number, live, stride, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr):
    column = tl.arange(0, WIDTH)[None, :]
    to = part + (number[:, None] * stride + column)
    inside = live[:, None] & (column < HEAD_WIDTH)
    tl.store(to, rows.to(part.dtype.element_ty), mask=inside)


@triton.jit
def row_lines(ROW_NUMBERS, row, query_live, n_rows, scale, alpha, RULE: tl.constexpr):
    """Each row's a and b. (query,)"""
    best = tl.load(ROW_NUMBERS + row, mask=query_live, other=0.0)
    reach = tl.load(ROW_NUMBERS + n_rows + row, mask=query_live, other=1.0)
    inverse = tl.load(ROW_NUMBERS + 2 * n_rows + row, mask=query_live, other=1.0)
    if RULE == "squares":
        times = tl.sqrt(inverse)
        shift = reach - best
    elif RULE == "lines":
        times = inverse
        shift = reach - best
    elif RULE == "powers":
        times = tl.exp2((alpha - 1.0) * tl.log2(inverse)) / reach
        shift = reach - best
    else:
        times = tl.zeros_like(best) + LOG2_E
        shift = tl.log2(inverse) / LOG2_E - best
    return times * scale, times * shift


@triton.jit
def weights_on_line(line, beta, RULE: tl.constexpr):
    """Weights, slopes, and for `powers` log₂ u."""
    logarithm = line
    if RULE == "squares":
        slope = tl.maximum(line, 0.0, propagate_nan=tl.PropagateNan.ALL)
        weights = slope * slope
    elif RULE == "lines":
        weights = tl.maximum(line, 0.0, propagate_nan=tl.PropagateNan.ALL)
        slope = tl.where(line == line, (line > 0.0).to(tl.float32), line)
    elif RULE == "powers":
        inside = tl.maximum(line, SMALLEST, propagate_nan=tl.PropagateNan.ALL)
        logarithm = quick_log2(inside)
        slope = tl.where(line <= 0.0, 0.0, tl.exp2((beta - 1.0) * logarithm))
        weights = slope * inside
    else:
        weights = tl.exp2(line)
        slope = weights
    return weights, slope, logarithm


@triton.jit
def are_chosen(words, step, key_number, KEYS: tl.constexpr):
    """Which of a block's keys each query chose: a word of bits for 32 of them.

    words: pointers to the block's first words, one a query; the next ones are `step` farther. These
    and the keys' numbers are broadcast to the weights' shape.
    """
    bits = tl.load(words)
    for word in tl.static_range(1, KEYS // 32):
        bits = tl.where(key_number % KEYS < 32 * word, bits, tl.load(words + word * step))
    return (bits >> (key_number % 32)) & 1 != 0


@triton.jit
def turn_words(of_row, turned, query_number, n_lines, n_keys, FARTHEST: tl.constexpr):
    """Writes the words of bits of some queries for the other walk, which goes by key."""
    word = tl.arange(0, FARTHEST // 32)[:, None]
    inside = word * 32 < n_keys
    words = tl.load(of_row[None, :] + word, mask=inside, other=0)
    to = turned + word.to(tl.int64) * n_lines + query_number[None, :]
    tl.store(to, words, mask=inside)


@triton.jit
def even_place(start, text, EVEN: tl.constexpr):
    """Where a text's rows begin in tensors in which they are filled up to a multiple of EVEN."""
    return (start // EVEN + text) * EVEN


@triton.jit
def beyond_line(weights, slope, logarithm):
    """What ∂α is made of: w (e^y − 1 − y) with y = (1 − α) ln w = −ln u. w e^y is the slope."""
    y = logarithm * -LN_2
    weighted = weights * y
    # by its series where the difference would lose its digits
    tail = 1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0))
    series = weighted * (y * (0.5 + y * (1.0 / 6.0 + y * tail)))
    return tl.where(y < 0.5, series, (slope - weights) - weighted)
