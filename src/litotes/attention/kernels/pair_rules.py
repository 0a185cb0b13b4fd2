"""From affinities to weights, for rows that lie on the chip as pairs of halves (pairs.py).

As row_weights.py, which has the equations; a row is a tuple of N_PAIRS tensors of pairs, and tells
how far its keys are behind the best one.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.attention.kernels.pairs import (
    first_of,
    pair,
    plus,
    plus_if_positive,
    plus_square,
    reaches,
    row_sums,
    second_of,
)
from litotes.attention.kernels.row_weights import LOG2_E, largest, power_below_one

N_PAIRS = tl.constexpr(4)

MOST_TURNS = tl.constexpr(12)
"""A bound for rows that never settle. (A `while` over tensors of pairs is too much for Triton 3.6.)
"""

SPELLS, TURNS_A_SPELL = tl.constexpr(8), tl.constexpr(6)
"""Enough to halve the range of half-precision numbers at every third turn; a settled tile skips
whole spells.
"""


@triton.jit
def rounded(numbers):
    """As half precision shows them."""
    return numbers.to(tl.float16).to(tl.float32)


@triton.jit
def for_all(numbers):
    """A number for each row, as pairs. (query, 1)"""
    return pair(numbers, numbers)[:, None]


@triton.jit
def block_of(behind, place: tl.constexpr):
    """A row's keys block by block, as float32: each pair holds two blocks."""
    if place % 2 == 0:
        return first_of(behind[place // 2])
    else:
        return second_of(behind[place // 2])


@triton.jit
def squares_sums(behind, more, N: tl.constexpr):
    """Of the first N tensors, the rows' Σ v and Σ v²: v = max(behind + more, 0)."""
    sums = plus_if_positive(behind[0], more)
    squares = plus_square(tl.zeros_like(sums), sums)
    for part in tl.static_range(1, N):
        inside = plus_if_positive(behind[part], more)
        sums = plus(sums, inside)
        squares = plus_square(squares, inside)
    return row_sums(sums), row_sums(squares)


@triton.jit
def squares_reach(behind, missing, n_keys, ROWS: tl.constexpr, PART: tl.constexpr):
    """α = 1.5, as `squares_row`, two keys at a time.

    Two looks at the first pairs, as if the others were like them, say where to begin.
    """
    close = 4.0 * tl.sqrt(missing)
    reach = tl.full([ROWS], 2.0, tl.float32)
    times = n_keys.to(tl.float32) / tl.minimum(n_keys, 2 * PART).to(tl.float32)
    for _ in tl.static_range(2):
        reach = rounded(reach)
        total, squares = squares_sums(behind, for_all(reach), 1)
        norm = tl.sqrt(squares * times)
        step = (norm - 2.0) * norm / tl.maximum(total * times, 0.01)
        reach = tl.minimum(tl.maximum(reach - step, 0.05), 2.0)
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
            reach = rounded(reach)
            total, squares = squares_sums(behind, for_all(reach), N_PAIRS)
            norm = tl.sqrt(squares)
            excess = norm - 2.0
            reach = tl.minimum(reach - excess * norm / total, 2.0)
            worst = largest(tl.abs(excess))
    return reach


@triton.jit
def powers_sums(behind, reach, beta, ROWS: tl.constexpr, N: tl.constexpr):
    """Of the first N tensors, the rows' Σ v^β and Σ v^(β−1): v = max(1 + behind / reach, 0)."""
    shrink = (1.0 / reach)[:, None]
    total = tl.zeros([ROWS], tl.float32)
    slope = tl.zeros([ROWS], tl.float32)
    for part in tl.static_range(N):
        first = tl.maximum(first_of(behind[part]) * shrink, -1.0)
        lower = power_below_one(first, beta - 1.0, False)
        second = tl.maximum(second_of(behind[part]) * shrink, -1.0)
        lower_second = power_below_one(second, beta - 1.0, False)
        total += tl.sum(lower * (1.0 + first) + lower_second * (1.0 + second), 1)
        slope += tl.sum(lower + lower_second, 1)
    return total, slope


@triton.jit
def powers_reach(behind, beta, missing, n_keys, ROWS: tl.constexpr, PART: tl.constexpr):
    """Any α in (1, 2], as `powers_row`; begun as `squares_reach` is."""
    close = 4.0 * tl.exp2(tl.log2(missing) / tl.minimum(beta, 2.0))
    reach = tl.zeros([ROWS], tl.float32) + beta
    times = n_keys.to(tl.float32) / tl.minimum(n_keys, 2 * PART).to(tl.float32)
    for _ in tl.static_range(4):
        total, slope = powers_sums(behind, reach, beta, ROWS, 1)
        # the best key of a row may lie elsewhere: then the first pairs may hold nothing at all
        total, slope = tl.maximum(total * times, 0.01), tl.maximum(slope * times, 0.01)
        norm = tl.exp2(tl.log2(total) / beta)
        step = beta * (reach / beta * norm - 1.0) * total / (norm * slope)
        reach = tl.minimum(tl.maximum(reach - step, 0.05 * beta), beta)
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
            total, slope = powers_sums(behind, reach, beta, ROWS, N_PAIRS)
            norm = tl.exp2(tl.log2(total) / beta)
            excess = reach / beta * norm - 1.0
            reach = tl.minimum(reach - beta * excess * total / (norm * slope), beta)
            worst = largest(tl.abs(excess))
    return reach


@triton.jit
def n_reaching(behind, least):
    """How many of each row's keys are at least so near the best one. (query,)"""
    reaching = reaches(behind[0], for_all(least))
    for part in tl.static_range(1, N_PAIRS):
        reaching = plus(reaching, reaches(behind[part], for_all(least)))
    return row_sums(reaching)


@triton.jit
def kept_reach(behind, lowest, n_keys, n_kept):
    """The n_kept-th largest of each row, how many keys are at least as large, and larger.

    As `kth_largest`; between two neighbours in half precision there is nothing more to find.
    """
    low, n_low = lowest, tl.zeros_like(lowest) + n_keys
    high, n_high = tl.zeros_like(lowest) + 0.001, tl.zeros_like(lowest)
    unsettled = largest(tl.where(n_low > n_kept, 1.0, 0.0))
    for _ in range(SPELLS):
        if unsettled > 0.0:
            for turn in range(TURNS_A_SPELL):
                if unsettled > 0.0:
                    half = rounded(0.5 * low + 0.5 * high)
                    line = low + (high - low) * ((n_low - n_kept + 0.5) / (n_low - n_high))
                    middle = rounded(tl.where(turn % 3 < 2, line, half))
                    middle = tl.where((middle > low) & (middle < high), middle, half)
                    n_above = n_reaching(behind, middle)
                    is_low = n_above >= n_kept
                    low, n_low = tl.where(is_low, middle, low), tl.where(is_low, n_above, n_low)
                    high = tl.where(is_low, high, middle)
                    n_high = tl.where(is_low, n_high, n_above)
                    half = rounded(0.5 * low + 0.5 * high)
                    is_open = (n_low > n_kept) & (half > low) & (half < high)
                    unsettled = largest(tl.where(is_open, 1.0, 0.0))
    return low, n_low, n_high


@triton.jit
def number_of_last(behind, reach, n_wanted, is_enough,
                   ROWS: tl.constexpr, PART: tl.constexpr):  # fmt: skip
    """Of keys exactly at `reach` so many are wanted, the earlier ones: the last one's number.

    is_enough: rows that take all of them. (query,)
    """
    last = tl.full([ROWS], 2 * N_PAIRS * PART, tl.int32)
    if largest(tl.where(is_enough, 0.0, 1.0)) > 0.0:
        # the block in which the last one lies, and the keys at `reach` there
        n_before = tl.zeros([ROWS], tl.float32)
        block = tl.zeros([ROWS], tl.int32)
        n_before_block = tl.zeros([ROWS], tl.float32)
        there = tl.zeros([ROWS, PART], tl.float32)
        for place in tl.static_range(2 * N_PAIRS):
            affinity = block_of(behind, place)
            equal = tl.where(affinity == reach[:, None], 1.0, 0.0)
            n_here = tl.sum(equal, 1)
            is_block = (n_before < n_wanted) & (n_before + n_here >= n_wanted)
            block = tl.where(is_block, place, block)
            n_before_block = tl.where(is_block, n_before, n_before_block)
            there = tl.where(is_block[:, None], equal, there)
            n_before += n_here
        place_there = tl.cumsum(there, 1) + n_before_block[:, None]
        fits = (there > 0.0) & (place_there <= n_wanted[:, None])
        number = tl.where(fits, tl.arange(0, PART)[None, :], -1)
        last = tl.where(is_enough, last, block * PART + tl.max(number, 1))
    return last


@triton.jit
def weigh_pair(behind, reach, last, key_number, beta, RULE: tl.constexpr):
    """Not yet divided by their sum."""
    if RULE == "squares":
        inside = tl.maximum(behind + reach[:, None], 0.0, propagate_nan=tl.PropagateNan.ALL)
        weights = inside * inside
    elif RULE == "powers":
        weights = power_below_one(behind * (1.0 / reach)[:, None], beta, False)
        weights = tl.where(behind == behind, weights, behind)
    else:
        kept = (behind > reach[:, None]) | (
            (behind == reach[:, None]) & (key_number[None, :] <= last[:, None])
        )
        weights = tl.where(kept | (behind != behind), tl.exp2(behind * LOG2_E), 0.0)
    return weights
