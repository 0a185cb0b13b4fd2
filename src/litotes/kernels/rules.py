"""From affinities to weights, for rows that lie on the chip whole.

Each function takes a tile (query, key) of float32 affinities, −∞ where there is no key, and gives
weights of the same shape and up to three numbers a row from which the weights follow again, key by
key (`row_lines`): a backward pass need not solve anything twice.

    softmax      best, 0, 1 / Σ exp
    entmax       best, reach, 1 / Σ v^β       (encoder/simplex.py has the equations)
    top_k        as softmax, over the chosen keys
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

MOST_ROUNDS = tl.constexpr(30)
"""Far more than Newton's method needs; a bound for rows that never settle."""

MOST_HALVINGS = tl.constexpr(64)
"""Enough for two float32 numbers to meet."""

SMALLEST = tl.constexpr(1.2e-38)
"""Of what float32 shows in full: whose logarithm is safe on every machine."""

LOG2_E = tl.constexpr(1.4426950408889634)

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
"""On a CPU there is no such instruction."""


@triton.jit
def largest(values):
    """The largest of a row's numbers, one a row; NaN counts for nothing."""
    return tl.max(tl.where(values == values, values, 0.0), 0)


@triton.jit
def exp_behind(affinity, best):
    """e^(affinity − best) as a power of 2: a multiplication with an addition, and one special
    function. `tl.exp` takes care of numbers too small to matter, with three instructions more.
    """
    return tl.exp2(affinity * LOG2_E - best * LOG2_E)


@triton.jit
def softmax_row(affinity):
    best = tl.max(affinity, 1)
    weights = exp_behind(affinity, best[:, None])
    inverse = 1.0 / tl.sum(weights, 1)
    return weights * inverse[:, None], best, tl.zeros_like(best), inverse


@triton.jit
def quick_log2(x):
    """log₂ by the chip's own instruction, good to 22 bits; −∞ of 0."""
    if INTERPRETED:
        return tl.where(x == 0.0, -float("inf"), tl.log2(tl.where(x == 0.0, 1.0, x)))
    else:
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def power_below_one(x, exponent, PRECISE):
    """(1 + x)^exponent, 0 where x ≤ −1.

    PRECISE: with the digits that adding 1 loses put back, for float32.
    """
    u = 1.0 + tl.maximum(x, -0.9999999)
    if PRECISE:
        logarithm = tl.log2(u) + LOG2_E * (tl.maximum(x, -0.9999999) - (u - 1.0)) / u
    else:
        logarithm = quick_log2(u)
    return tl.where(x > -1.0, tl.exp2(exponent * logarithm), 0.0)


@triton.jit
def beta_of(ALPHA, head, RULE):
    """β = 1 / (α − 1), which is also how far a row reaches at most."""
    if RULE == "powers":
        return 1.0 / (tl.load(ALPHA + head) - 1.0)
    elif RULE == "lines":
        return 1.0
    else:
        return 2.0


@triton.jit
def entmax_row(affinity, beta, missing, RULE, PRECISE):
    """Newton's method on how far each row reaches. missing: what may be missing from a sum of 1

    squares (α = 1.5): nothing but sums and roots. lines (α = 2): each step is exact as soon as no
    more keys fall out of reach. powers: any α in (1, 2], by logarithms.
    """
    # one more step raises what is left to the power min(β, 2)
    close = 4.0 * tl.exp2(tl.log2(missing) / tl.minimum(beta, 2.0))
    best = tl.max(affinity, 1)
    behind = affinity - best[:, None]
    reach = tl.zeros_like(best) + beta
    worst = close + 1.0
    rounds = 0
    while (worst > close) & (rounds < MOST_ROUNDS):
        if RULE == "powers":
            less_one = tl.maximum(behind * (1.0 / reach)[:, None], -1.0)
            lower = power_below_one(less_one, beta - 1.0, PRECISE)
            total = tl.sum(lower * (1.0 + less_one), 1)
            norm = tl.exp2(tl.log2(total) / beta)
            excess = reach / beta * norm - 1.0
            reach -= beta * excess * total / (norm * tl.sum(lower, 1))
        else:
            inside = tl.maximum(behind + reach[:, None], 0.0)
            if RULE == "squares":
                norm = tl.sqrt(tl.sum(inside * inside, 1))
                excess = norm - 2.0
                reach -= excess * norm / tl.sum(inside, 1)
            else:
                excess = tl.sum(inside, 1) - 1.0
                reach -= excess / tl.sum((inside > 0.0).to(tl.float32), 1)
        worst = largest(excess)
        rounds += 1
    if RULE == "powers":
        weights = power_below_one(behind * (1.0 / reach)[:, None], beta, PRECISE)
    else:
        weights = tl.maximum(behind + reach[:, None], 0.0)
    # NaN is not larger than 0: a row with one has to stay NaN
    weights = tl.where(behind == behind, weights, behind)
    if RULE == "squares":
        weights *= weights
    inverse = 1.0 / tl.sum(weights, 1)
    return weights * inverse[:, None], best, reach, inverse


@triton.jit
def kth_largest(values, n_live, n_kept):
    """The n_kept-th largest of each row's n_live first numbers; the others are −∞.

    Halves the range between the row's smallest and largest, every second time where a straight line
    between the counts would put it, until at most one number too many or too few lies above; then
    takes one step to the number itself.
    """
    is_live = values > -float("inf")
    highest = tl.max(values, 1)
    lowest = tl.min(tl.where(is_live, values, float("inf")), 1)
    low, n_low = lowest, tl.zeros_like(lowest) + n_live  # so many lie at or above `low`
    high, n_high = highest + tl.maximum(tl.abs(highest) * 1e-6, 1e-30), tl.zeros_like(lowest)
    middle, n_above = low, n_low
    unsettled = largest(tl.where(n_low > n_kept + 1, 1.0, 0.0))
    rounds = 0
    while (unsettled > 0.0) & (rounds < MOST_HALVINGS):
        half = 0.5 * low + 0.5 * high
        line = low + (high - low) * ((n_low - n_kept) / tl.maximum(n_low - n_high, 1.0))
        next_middle = tl.where(rounds % 2 == 0, line, half)
        next_middle = tl.where((next_middle > low) & (next_middle < high), next_middle, half)
        is_done = (tl.abs(n_above - n_kept) <= 1.0) | (half <= low) | (half >= high)
        middle = tl.where(is_done, middle, next_middle)
        n_above = tl.sum((values >= middle[:, None]).to(tl.float32), 1)
        is_low = n_above >= n_kept
        low, n_low = tl.where(is_low, middle, low), tl.where(is_low, n_above, n_low)
        high, n_high = tl.where(is_low, high, middle), tl.where(is_low, n_high, n_above)
        half = 0.5 * low + 0.5 * high
        is_done = (tl.abs(n_above - n_kept) <= 1.0) | (half <= low) | (half >= high)
        unsettled = largest(tl.where(is_done, 0.0, 1.0))
        rounds += 1
    # the number itself: the smallest at or above the middle, or its neighbour on either side
    up = tl.min(tl.where(values >= middle[:, None], values, float("inf")), 1)
    down = tl.max(tl.where(values < middle[:, None], values, -float("inf")), 1)
    n_up = tl.sum((values == up[:, None]).to(tl.float32), 1)
    above_up = tl.min(tl.where(values > up[:, None], values, float("inf")), 1)
    one_too_many = tl.where((n_above == n_kept + 1) & (n_up == 1), above_up, up)
    found = tl.where(n_above == n_kept - 1, down, one_too_many)
    return tl.where(tl.abs(n_above - n_kept) <= 1.0, found, low)


@triton.jit
def best_of_row(values, n_live, n_kept):
    """Marks the n_kept largest numbers of each row; of equals the earlier one."""
    threshold = kth_largest(values, n_live, n_kept)
    n_larger = tl.sum((values > threshold[:, None]).to(tl.float32), 1)
    is_equal = values == threshold[:, None]
    n_equal = tl.sum(is_equal.to(tl.float32), 1)
    chosen = values >= threshold[:, None]
    if largest(n_larger + n_equal - n_kept) > 0.0:
        place = tl.cumsum(is_equal.to(tl.float32), 1)  # from 1
        fits = n_larger[:, None] + place <= n_kept
        chosen = (values > threshold[:, None]) | (is_equal & fits)
    return chosen


# From products to weights by straight lines, and what walks need besides.
#
# A row's weights follow from a straight line through its products p = query · key. With u = a p + b
# (of entmax the positive part alone):
#
#     softmax, top_k    w = 2^u        slope s = w
#     entmax            w = u^β        slope s = u^(β−1) = w^(2−α)       β = 1 / (α − 1)

LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def first_number(TENSOR, start, stride, head, HEAD_WIDTH):
    """Finds where a head's part of a text begins: from there on, places are short numbers."""
    return TENSOR + start.to(tl.int64) * stride + head * HEAD_WIDTH


@triton.jit
def load_part(part, number, live, stride, HEAD_WIDTH, WIDTH):
    """Some rows of such a part, 0 where there are none. (row, WIDTH)"""
    column = tl.arange(0, WIDTH)[None, :]
    at = part + (number[:, None] * stride + column)
    return tl.load(at, mask=live[:, None] & (column < HEAD_WIDTH), other=0.0)


@triton.jit
def store_part(part, rows, number, live, stride, HEAD_WIDTH, WIDTH):
    column = tl.arange(0, WIDTH)[None, :]
    to = part + (number[:, None] * stride + column)
    inside = live[:, None] & (column < HEAD_WIDTH)
    tl.store(to, rows.to(part.dtype.element_ty), mask=inside)


@triton.jit
def row_lines(ROW_NUMBERS, row, query_live, n_rows, scale, beta, RULE):
    """Each row's a and b. (query,)"""
    best = tl.load(ROW_NUMBERS + row, mask=query_live, other=0.0)
    reach = tl.load(ROW_NUMBERS + n_rows + row, mask=query_live, other=1.0)
    inverse = tl.load(ROW_NUMBERS + 2 * n_rows + row, mask=query_live, other=1.0)
    shift = reach - best
    if RULE == "squares":
        times = tl.sqrt(inverse)
    elif RULE == "lines":
        times = inverse
    elif RULE == "powers":
        times = tl.exp2(tl.log2(inverse) / beta) / reach
    else:
        times = tl.zeros_like(best) + LOG2_E
        shift = tl.log2(inverse) / LOG2_E - best
    return times * scale, times * shift


@triton.jit
def weights_on_line(line, beta, RULE, PRECISE):
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
        logarithm = tl.log2(inside) if PRECISE else quick_log2(inside)
        slope = tl.where(line <= 0.0, 0.0, tl.exp2((beta - 1.0) * logarithm))
        weights = slope * inside
    else:
        weights = tl.exp2(line)
        slope = weights
    return weights, slope, logarithm


@triton.jit
def are_chosen(words, step, key_number, KEYS):
    """Marks those of a block's keys each query chose: a word of bits for 32 of them.

    words: pointers to the block's first words, one a query; the next ones are `step` farther. These
    and the keys' numbers are broadcast to the weights' shape.
    """
    bits = tl.load(words)
    for word in tl.static_range(1, KEYS // 32):
        bits = tl.where(key_number % KEYS < 32 * word, bits, tl.load(words + word * step))
    return (bits >> (key_number % 32)) & 1 != 0


@triton.jit
def turn_words(of_row, turned, query_number, query_live, n_lines, n_keys, FARTHEST):
    """Writes the words of bits of some queries for the other walk, which goes by key."""
    word = tl.arange(0, FARTHEST // 32)[:, None]
    inside = (word * 32 < n_keys) & query_live[None, :]
    words = tl.load(of_row[None, :] + word, mask=inside, other=0)
    to = turned + word.to(tl.int64) * n_lines + query_number[None, :]
    tl.store(to, words, mask=inside)


@triton.jit
def even_place(start, text, EVEN):
    """Finds where a text's rows begin in tensors that fill them up to a multiple of EVEN."""
    return (start // EVEN + text) * EVEN


@triton.jit
def beyond_line(weights, slope, logarithm):
    """Gives the terms of ∂α: w (e^y − 1 − y) with y = (1 − α) ln w = −ln u. w e^y is the slope."""
    y = logarithm * -LN_2
    weighted = weights * y
    # by its series where the difference would lose its digits
    tail = 1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0 + y * (1.0 / 5040.0)))
    series = weighted * (y * (0.5 + y * (1.0 / 6.0 + y * tail)))
    return tl.where(y < 0.5, series, (slope - weights) - weighted)
