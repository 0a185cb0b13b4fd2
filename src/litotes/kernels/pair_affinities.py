"""Affinities of rows that lie on the chip as pairs of halves (pairs.py), block by block."""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.forward_kernel import distance_bias, product
from litotes.kernels.pair_rows import row_best
from litotes.kernels.pair_rules import N_PAIRS, for_all
from litotes.kernels.pairs import larger, moved, pair, plus


@triton.jit
def part_affinities(
    query, KEY, query_number, start, query_live, n_keys, ORIGIN, BUCKETS, BIAS, key_start,
    key_stride, head, scale, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, FARTHEST: tl.constexpr,
    WITH_BIAS: tl.constexpr,
):  # fmt: skip
    """With the bias, and −∞ where there is no key. (query, PART)"""
    number = tl.arange(0, PART)
    live = number < n_keys - start
    key_place = key_start + start + number
    column = tl.arange(0, COLUMNS)[:, None]
    key_rows = KEY + key_place.to(tl.int64) * key_stride + head * HEAD_WIDTH
    key = tl.load(key_rows[None, :] + column, mask=live[None, :] & (column < HEAD_WIDTH), other=0.0)
    # a key that is not there is 0, and so is its product: what is added says that it is not there
    nothing = tl.where(live, 0.0, -float("inf"))[None, :]
    affinity = product(query, key, tl.zeros([ROWS, PART], tl.float32), False) * scale + nothing
    if WITH_BIAS:
        bias, _ = distance_bias(
            ORIGIN, BUCKETS, BIAS, key_start + query_number[:, None], key_place[None, :],
            query_live[:, None], live[None, :], head, N_HEADS, FARTHEST)  # fmt: skip
        affinity += bias
    return affinity


@triton.jit
def gather_pairs(
    query, KEY, query_number, query_live, n_keys, ORIGIN, BUCKETS, BIAS, key_start, key_stride,
    head, scale, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr, FARTHEST: tl.constexpr, WITH_BIAS: tl.constexpr,
    CENTRED: tl.constexpr, PRODUCTS: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    """Each row's best affinity, and how far all keys are behind it, as pairs.

    CENTRED: rounded less the best of the first keys: so the best of all are near 0, where half
    precision is finest.
    """
    about = tl.zeros([ROWS], tl.float32)
    if CENTRED:
        some = part_affinities(
            query, KEY, query_number, 0, query_live, n_keys, ORIGIN, BUCKETS, BIAS, key_start,
            key_stride, head, scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, PART, FARTHEST,
            WITH_BIAS)  # fmt: skip
        about = tl.max(some, 1)
    pairs_0 = tl.zeros([ROWS, PART], tl.int32)
    pairs_1 = tl.zeros([ROWS, PART], tl.int32)
    pairs_2 = tl.zeros([ROWS, PART], tl.int32)
    pairs_3 = tl.zeros([ROWS, PART], tl.int32)
    # a bias is looked up for every pair: loaded ahead as well it would not fit the chip
    N_AHEAD: tl.constexpr = 1 if WITH_BIAS else 3
    for start in tl.range(
        0, 2 * N_PAIRS * PART, 2 * PART, num_stages=N_AHEAD, loop_unroll_factor=TOGETHER
    ):
        first = part_affinities(
            query, KEY, query_number, start, query_live, n_keys, ORIGIN, BUCKETS, BIAS, key_start,
            key_stride, head, scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, PART, FARTHEST,
            WITH_BIAS)  # fmt: skip
        second = part_affinities(
            query, KEY, query_number, start + PART, query_live, n_keys, ORIGIN, BUCKETS, BIAS,
            key_start, key_stride, head, scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, PART, FARTHEST,
            WITH_BIAS)  # fmt: skip
        pairs_0, pairs_1, pairs_2 = moved(pairs_1), moved(pairs_2), moved(pairs_3)
        if CENTRED:
            first, second = first - about[:, None], second - about[:, None]
        pairs_3 = pair(first, second)
    best = row_best(larger(larger(pairs_0, pairs_1), larger(pairs_2, pairs_3)), PRODUCTS)
    less = for_all(-best)
    best += about
    return best, plus(pairs_0, less), plus(pairs_1, less), plus(pairs_2, less), plus(pairs_3, less)
