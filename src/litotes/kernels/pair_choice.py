"""The best keys of rows that lie on the chip as pairs of halves (pairs.py).

No number is larger than 0, the best key's. So numbers are ordered as their bits are, without the
sign: the n-th largest is found bit by bit, the same 15 turns for every row, and no warp waits for
another. Of equal numbers the earlier ones stay; the later ones are moved far behind.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.pair_rows import row_sums, row_sums_of_first
from litotes.kernels.pair_rules import N_PAIRS
from litotes.kernels.pairs import as_half, compared, pair, plus, plus_product

N_BITS, HIGHEST_BIT = tl.constexpr(15), tl.constexpr(0x4000)
INFINITE = tl.constexpr(0x7C00)
"""The bits of infinity in half precision, above those of all numbers."""

FAR = tl.constexpr(-30000.0)
FAR_PAIR = tl.constexpr(0xF753F753 - 2**32)
"""So far behind that there is no weight: e to this power is 0. And as a pair."""


@triton.jit
def minus(bits):
    """−x for each row, as pairs, from the bits of x. (query, 1)"""
    return ((bits | 0x8000) * 0x10001)[:, None]


@triton.jit
def n_reaching(behind, least, PRODUCTS: tl.constexpr):
    """How many of each row's keys are at least so near the best one. (query,)"""
    reaching = compared(behind[0], least, "ge")
    for part in tl.static_range(1, N_PAIRS):
        reaching = plus(reaching, compared(behind[part], least, "ge"))
    return row_sums(reaching, PRODUCTS)


@triton.jit
def kept_reach(behind, n_kept, ROWS: tl.constexpr, PRODUCTS: tl.constexpr):
    """The n_kept-th largest of each row, as the bits of how far behind it is, how many keys are at
    least as large, and how many larger.
    """
    reach = tl.zeros([ROWS], tl.int32)  # too few keys are nearer
    n_reached = tl.zeros([ROWS], tl.float32)
    n_nearer = tl.zeros([ROWS], tl.float32)
    bit = tl.full([ROWS], HIGHEST_BIT, tl.int32)
    for _ in range(N_BITS):
        farther = reach + bit
        least = minus(tl.minimum(farther - 1, INFINITE))
        n_found = n_reaching(behind, least, PRODUCTS)
        is_few = n_found < n_kept
        reach = tl.where(is_few, farther, reach)
        n_nearer = tl.where(is_few, n_found, n_nearer)
        n_reached = tl.where(is_few, n_reached, n_found)
        bit = bit >> 1
    return reach, n_reached, n_nearer


@triton.jit
def block_of_last(behind, at, n_wanted, ROWS: tl.constexpr, PRODUCTS: tl.constexpr):
    """Of keys exactly `at` so many are wanted, the earlier ones: the block in which the last of
    them lies, and how many are wanted of that block. (query,)
    """
    block = tl.zeros([ROWS], tl.int32)
    n_there = n_wanted
    n_before = tl.zeros([ROWS], tl.float32)
    for part in tl.static_range(N_PAIRS):
        equal = compared(behind[part], at, "eq")
        n_both, n_first = row_sums(equal, PRODUCTS), row_sums_of_first(equal, PRODUCTS)
        for half in tl.static_range(2):
            n_here = n_first if half == 0 else n_both - n_first
            is_it = (n_before < n_wanted) & (n_before + n_here >= n_wanted)
            block = tl.where(is_it, 2 * part + half, block)
            n_there = tl.where(is_it, n_wanted - n_before, n_there)
            n_before += n_here
    return block, n_there


@triton.jit
def only_in(block, part: tl.constexpr, number):
    """`number` for rows whose block lies in this part, in its half of the pair. (query, 1)"""
    first = tl.where(block == 2 * part, number, 0.0)
    second = tl.where(block == 2 * part + 1, number, 0.0)
    return pair(first, second)[:, None]


@triton.jit
def only_after(block, part: tl.constexpr, number):
    """`number` for rows whose block lies before this part's, for each half of the pair."""
    first = tl.where(block < 2 * part, number, 0.0)
    second = tl.where(block < 2 * part + 1, number, 0.0)
    return pair(first, second)[:, None]


@triton.jit
def part_without_late(pairs, at, late, block, part: tl.constexpr):
    pairs = plus_product(pairs, compared(pairs, at, "eq"), only_after(block, part, FAR))
    return plus_product(pairs, late, only_in(block, part, FAR))


@triton.jit
def without_late(behind, reach, n_wanted, ROWS: tl.constexpr, PART: tl.constexpr,
                 PRODUCTS: tl.constexpr):  # fmt: skip
    """The same rows, but of keys exactly at `reach` only so many, the earlier ones."""
    at = minus(reach)
    block, n_there = block_of_last(behind, at, n_wanted, ROWS, PRODUCTS)
    of_block = tl.zeros([ROWS, PART], tl.int32)
    for part in tl.static_range(N_PAIRS):
        equal = compared(behind[part], at, "eq")
        of_block = plus_product(of_block, equal, only_in(block, part, 1.0))
    is_equal = as_half(of_block) + as_half(of_block >> 16)  # one of them is 0
    # how many there are up to each key: a product with ones up to there
    number = tl.arange(0, PART)
    up_to = (number[:, None] <= number[None, :]).to(tl.float16)
    place = tl.dot(is_equal, up_to)
    late = ((is_equal > 0.0) & (place > n_there[:, None])).to(tl.float32)
    late = pair(late, late)
    return (
        part_without_late(behind[0], at, late, block, 0),
        part_without_late(behind[1], at, late, block, 1),
        part_without_late(behind[2], at, late, block, 2),
        part_without_late(behind[3], at, late, block, 3),
    )


@triton.jit
def only_kept(pairs, at):
    """The same numbers, but far behind where they are less than `at`. NaN stays."""
    return plus_product(pairs, compared(pairs, at, "lt"), tl.zeros_like(at) + FAR_PAIR)


@triton.jit
def store_kept(CHOSEN, row, behind, reach, query_live, ROWS: tl.constexpr, PART: tl.constexpr,
               FARTHEST: tl.constexpr):  # fmt: skip
    """The kept keys as bits, 32 a word, as `store_chosen` writes them: `behind` is without late
    ones.
    """
    at = minus(reach)
    WORDS: tl.constexpr = PART // 32
    to = CHOSEN + row.to(tl.int64)[:, None] * (FARTHEST // 32) + tl.arange(0, WORDS)[None, :]
    for part in tl.static_range(N_PAIRS):
        kept = compared(behind[part], at, "ge") >> 10  # of the bits of 1 the lowest
        for half in tl.static_range(2):
            by_word = tl.reshape((kept >> (16 * half)) & 1, [ROWS, WORDS, 32])
            words = tl.sum(by_word << tl.arange(0, 32)[None, None, :], 2)
            tl.store(to + (2 * part + half) * WORDS, words, mask=query_live[:, None])
