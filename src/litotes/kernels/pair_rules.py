"""Entmax for rows that lie on the chip as pairs of halves (pairs.py): how far a row reaches.

As row_weights.py, which has the equations; a row is a tuple of N_PAIRS tensors of pairs, and tells
how far its keys are behind the best one.

    excess E of the norm at some reach:  1 + E = (reach / β) A^{1/β},  A = Σ v^β,  B = Σ v^{β−1}
    a step:                              reach → reach × (1 + E)^{−A / B}

This is Newton's step on the logarithm of the norm by the logarithm of the reach, which is nearly
straight: two steps from above do what five do on the norm itself. But it may fall short of the
root and, where nearly all keys are equally far away, for ever; so `squares_reach` goes on with
steps on the norm, which never do, and `powers_reach` is followed by `exact_reach` where the sum of
the weights tells that something is amiss.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.pair_rows import row_sums
from litotes.kernels.pairs import (
    compared,
    first_of,
    pair,
    plus,
    plus_if_positive,
    plus_product,
    second_of,
    shrunk_towards_one,
    times,
)
from litotes.kernels.row_weights import largest, power_below_one

N_PAIRS = tl.constexpr(4)

MOST_TURNS = tl.constexpr(12)
"""A bound for rows that never settle. (A `while` over tensors of pairs is too much for Triton 3.6.)
"""

MOST_SQUARINGS = tl.constexpr(4)
"""Up to v^64, which half precision can still tell apart; beyond, rows begin farther away."""


@triton.jit
def rounded(numbers):
    """As half precision shows them."""
    return numbers.to(tl.float16).to(tl.float32)


@triton.jit
def for_all(numbers):
    """A number for each row, as pairs. (query, 1)"""
    return pair(numbers, numbers)[:, None]


@triton.jit
def squares_sums(behind, more, PRODUCTS: tl.constexpr):
    """The rows' Σ v and Σ v²: v = max(behind + more, 0)."""
    sums = plus_if_positive(behind[0], more)
    squares = times(sums, sums)
    for part in tl.static_range(1, N_PAIRS):
        inside = plus_if_positive(behind[part], more)
        sums = plus(sums, inside)
        squares = plus_product(squares, inside, inside)
    return row_sums(sums, PRODUCTS), row_sums(squares, PRODUCTS)


@triton.jit
def squares_reach(behind, missing, ROWS: tl.constexpr, PRODUCTS: tl.constexpr):
    """α = 1.5, as `squares_row`, two keys at a time."""
    close = 4.0 * tl.sqrt(missing)
    reach = tl.full([ROWS], 2.0, tl.float32)
    for _ in range(2):
        total, squares = squares_sums(behind, for_all(reach), PRODUCTS)
        half_norm = 0.5 * tl.log2(squares) - 1.0
        reach = reach * tl.exp2(-half_norm * squares / (reach * total))
        reach = rounded(tl.minimum(reach, 2.0))
    # The program asks all its rows whether they have settled after the third turn, not before: its
    # warps would wait for each other.
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
            reach = rounded(reach)
            total, squares = squares_sums(behind, for_all(reach), PRODUCTS)
            norm = tl.sqrt(squares)
            excess = norm - 2.0
            reach = tl.minimum(reach - excess * norm / total, 2.0)
            worst = largest(tl.abs(excess))
    return reach


@triton.jit
def cubic(place, first, second, third, fourth):
    """How much four known places say of what is at `place`: the cubic through them."""
    a, b, c, d = place - first, place - second, place - third, place - fourth
    return (
        b * c * d / ((first - second) * (first - third) * (first - fourth)),
        a * c * d / ((second - first) * (second - third) * (second - fourth)),
        a * b * d / ((third - first) * (third - second) * (third - fourth)),
        a * b * c / ((fourth - first) * (fourth - second) * (fourth - third)),
    )


@triton.jit
def log_of_others(pairs, PRODUCTS: tl.constexpr):
    """log₂ of a row's sum without its best key, whose part in every Σ v^p is 1. (query,)"""
    return tl.log2(tl.maximum(row_sums(pairs, PRODUCTS) - 1.0, 0.001))


@triton.jit
def moments_below_two(behind, shrink, PRODUCTS: tl.constexpr):
    """Of the rows' Σ v^0, Σ v, Σ v² and Σ v³: v = max(1 + behind × shrink, 0)."""
    counts = tl.zeros_like(behind[0])
    sums = tl.zeros_like(counts)
    squares = tl.zeros_like(counts)
    cubes = tl.zeros_like(counts)
    for part in tl.static_range(N_PAIRS):
        inside = shrunk_towards_one(behind[part], shrink)
        counts = plus(counts, compared(tl.zeros_like(shrink), inside, "lt"))
        sums = plus(sums, inside)
        squared = times(inside, inside)
        squares, cubes = plus(squares, squared), plus_product(cubes, squared, inside)
    return (
        log_of_others(counts, PRODUCTS),
        log_of_others(sums, PRODUCTS),
        log_of_others(squares, PRODUCTS),
        log_of_others(cubes, PRODUCTS),
    )


@triton.jit
def moments_from_two(behind, shrink, n_squarings, PRODUCTS: tl.constexpr):
    """Of the rows' Σ v^(p/2), Σ v^p, Σ v^(3p/2) and Σ v^2p: p = 2^(1 + n_squarings)."""
    lower = tl.zeros_like(behind[0])
    middle = tl.zeros_like(lower)
    higher = tl.zeros_like(lower)
    upper = tl.zeros_like(lower)
    for part in tl.static_range(N_PAIRS):
        inside = shrunk_towards_one(behind[part], shrink)
        for _ in range(n_squarings):
            inside = times(inside, inside)
        lower = plus(lower, inside)
        squared = times(inside, inside)
        middle, higher = plus(middle, squared), plus_product(higher, squared, inside)
        upper = plus_product(upper, squared, squared)
    return (
        log_of_others(lower, PRODUCTS),
        log_of_others(middle, PRODUCTS),
        log_of_others(higher, PRODUCTS),
        log_of_others(upper, PRODUCTS),
    )


@triton.jit
def powers_reach(behind, beta, ROWS: tl.constexpr, PRODUCTS: tl.constexpr):
    """Any α in (1, 2], to some thousandths at worst for rows as they come.

    A power of every number at every turn, whatever β, would keep the chip's special functions busy
    for longer than all else takes. But log Σ v^p over all keys but the best is a smooth function of
    p, and multiplications give it at four places around β: at 0, 1, 2 and 3, or at p/2, p, 3p/2 and
    2p for p a power of 2. The cubic through them stands for what lies between.
    """
    is_low = beta < 2.0
    n_squarings = tl.where(is_low, 0, tl.floor(tl.log2(beta)).to(tl.int32) - 1)
    n_squarings = tl.minimum(n_squarings, MOST_SQUARINGS)
    # places by log (p + shift): with this shift the curve is nearly straight, from 0 on
    shift = tl.where(is_low, 0.7, 0.0)
    unit = tl.where(is_low, 1.0, tl.exp2(n_squarings.to(tl.float32)))
    first = tl.log2(tl.where(is_low, 0.7, unit))
    second = tl.log2(tl.where(is_low, 1.7, 2.0 * unit))
    third = tl.log2(tl.where(is_low, 2.7, 3.0 * unit))
    fourth = tl.log2(tl.where(is_low, 3.7, 4.0 * unit))
    of_total = cubic(tl.log2(beta + shift), first, second, third, fourth)
    of_slope = cubic(tl.log2(beta - 1.0 + shift), first, second, third, fourth)
    shrink = tl.zeros([ROWS], tl.float32) + 1.0 / beta
    n_turns = tl.where(beta < 1.3, 4, tl.where(beta < 3.0, 3, 2))
    for _ in range(n_turns):
        shrink = rounded(shrink)
        if is_low:
            a, b, c, d = moments_below_two(behind, for_all(shrink), PRODUCTS)
        else:
            a, b, c, d = moments_from_two(behind, for_all(shrink), n_squarings, PRODUCTS)
        total = tl.exp2(of_total[0] * a + of_total[1] * b + of_total[2] * c + of_total[3] * d)
        slope = tl.exp2(of_slope[0] * a + of_slope[1] * b + of_slope[2] * c + of_slope[3] * d)
        log_excess = tl.log2(1.0 + total) / beta - tl.log2(shrink * beta)
        shrink *= tl.exp2(log_excess * tl.minimum((1.0 + total) / (1.0 + slope), 1.0))
        shrink = tl.maximum(shrink, 1.0 / beta)
    return 1.0 / shrink


@triton.jit
def powers_excess(total, reach, beta):
    """E, from Σ v^β."""
    return reach / beta * tl.exp2(tl.log2(total) / beta) - 1.0


@triton.jit
def powers_sums(behind, reach, beta, ROWS: tl.constexpr):
    """The rows' Σ v^β and Σ v^(β−1): v = max(1 + behind / reach, 0)."""
    shrink = (1.0 / reach)[:, None]
    total = tl.zeros([ROWS], tl.float32)
    slope = tl.zeros([ROWS], tl.float32)
    for part in tl.static_range(N_PAIRS):
        first = tl.maximum(first_of(behind[part]) * shrink, -1.0)
        lower = power_below_one(first, beta - 1.0, False)
        second = tl.maximum(second_of(behind[part]) * shrink, -1.0)
        lower_second = power_below_one(second, beta - 1.0, False)
        total += tl.sum(lower * (1.0 + first) + lower_second * (1.0 + second), 1)
        slope += tl.sum(lower + lower_second, 1)
    return total, slope


@triton.jit
def exact_reach(behind, reach, beta, missing, ROWS: tl.constexpr):
    """Any α in (1, 2], as `powers_row`, from wherever."""
    close = 4.0 * tl.exp2(tl.log2(missing) / tl.minimum(beta, 2.0))
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
            total, slope = powers_sums(behind, reach, beta, ROWS)
            excess = powers_excess(total, reach, beta)
            step = reach * excess / (1.0 + excess) * total / slope
            reach = tl.minimum(reach - step, beta)
            worst = largest(tl.abs(excess))
    return reach
