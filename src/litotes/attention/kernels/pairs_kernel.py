"""Rows of up to 512 keys in half precision: affinities lie on the chip as pairs (pairs.py).

Every second block of keys shares its registers with the one before: four tensors of pairs hold a
row. Each is computed while the next keys are on their way; then the row is weighed where it lies,
and a second walk over the pairs mixes the values.

    behind  = affinity − best of the row      exact where it matters: near 0
    weights = rule(behind), not yet divided by their sum
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.attention.kernels.forward_kernel import product, received_by_key
from litotes.attention.kernels.pairs import (
    first_of,
    moved,
    pair,
    plus,
    plus_if_positive,
    plus_square,
    reaches,
    row_sums,
    second_of,
)
from litotes.attention.kernels.row_weights import LOG2_E, largest, power_below_one
from litotes.attention.kernels.walk_kernel import key_affinities, load_rows, store_mixed

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
def powers_reach(behind, beta, missing, ROWS: tl.constexpr):
    """Any α in (1, 2], as `powers_row`."""
    close = 4.0 * tl.exp2(tl.log2(missing) / tl.minimum(beta, 2.0))
    reach = tl.zeros([ROWS], tl.float32) + beta
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
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
            norm = tl.exp2(tl.log2(total) / beta)
            excess = reach / beta * norm - 1.0
            reach -= beta * excess * total / (norm * slope)
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
            affinity = first_of(behind[place // 2])
            if place % 2 == 1:
                affinity = second_of(behind[place // 2])
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


@triton.jit(do_not_specialize=["n_slots_apart", "n_slots"])
def attend_pairs(
    QUERY, KEY, VALUE, MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES, ALPHA, KEPT, ORIGIN, BUCKETS, BIAS,
    ALIVE, RECEIVED, HEAD_SIZE,
    query_stride, key_stride, value_stride, n_slots_apart, n_slots, scale, missing,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr, FARTHEST: tl.constexpr, RULE: tl.constexpr,
    WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr, IMPORTANCE: tl.constexpr,
    WITH_HEAD_SIZE: tl.constexpr,
):  # fmt: skip
    """As `attend_tile`, whose arguments these are. PART: keys in half a pair."""
    head, tile = tl.program_id(1), tl.program_id(0)
    text, slot = tl.load(TILES + 2 * tile), tl.load(TILES + 2 * tile + 1)
    if text < 0:
        return
    query_start, key_start = tl.load(QUERY_BOUNDS + text), tl.load(KEY_BOUNDS + text)
    n_queries = tl.load(QUERY_BOUNDS + text + 1) - query_start
    n_keys = tl.load(KEY_BOUNDS + text + 1) - key_start
    query_number = slot * ROWS + tl.arange(0, ROWS)
    query_live, query_place = query_number < n_queries, query_start + query_number
    query = load_rows(QUERY + query_place.to(tl.int64) * query_stride, query_live, head,
                      HEAD_WIDTH, COLUMNS)  # fmt: skip
    is_alive = True
    if WITH_ALIVE:
        is_alive = (tl.load(ALIVE + text) >> head) & 1 == 1
    best = tl.full([ROWS], -float("inf"), tl.float32)
    lowest = tl.full([ROWS], float("inf"), tl.float32)
    pairs_0 = tl.zeros([ROWS, PART], tl.int32)
    pairs_1 = tl.zeros([ROWS, PART], tl.int32)
    pairs_2 = tl.zeros([ROWS, PART], tl.int32)
    pairs_3 = tl.zeros([ROWS, PART], tl.int32)
    for start in tl.range(0, 2 * N_PAIRS * PART, 2 * PART, num_stages=3):
        key_number = start + tl.arange(0, PART)
        key_far = (key_start + key_number).to(tl.int64)
        first = key_affinities(
            query, KEY + key_far * key_stride, query_number, key_number, query_live,
            key_number < n_keys, ORIGIN, BUCKETS, BIAS, key_start, head, scale, N_HEADS,
            HEAD_WIDTH, COLUMNS, ROWS, PART, FARTHEST, False, WITH_BIAS)  # fmt: skip
        second = key_affinities(
            query, KEY + (key_far + PART) * key_stride, query_number, key_number + PART,
            query_live, key_number + PART < n_keys, ORIGIN, BUCKETS, BIAS, key_start, head, scale,
            N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, PART, FARTHEST, False, WITH_BIAS)  # fmt: skip
        best = tl.maximum(best, tl.max(tl.maximum(first, second), 1))
        if RULE == "top_k":
            nothing = float("inf")
            lowest = tl.minimum(lowest, tl.minimum(
                tl.min(tl.where((key_number < n_keys)[None, :], first, nothing), 1),
                tl.min(tl.where((key_number + PART < n_keys)[None, :], second, nothing), 1),
            ))  # fmt: skip
        pairs_0, pairs_1, pairs_2 = moved(pairs_1), moved(pairs_2), moved(pairs_3)
        pairs_3 = pair(first, second)
    best = rounded(best)
    less = for_all(-best)
    pairs_0, pairs_1 = plus(pairs_0, less), plus(pairs_1, less)
    pairs_2, pairs_3 = plus(pairs_2, less), plus(pairs_3, less)
    behind = (pairs_0, pairs_1, pairs_2, pairs_3)
    beta, last = 2.0, tl.zeros([ROWS], tl.int32)
    if RULE == "squares":
        reach = squares_reach(behind, missing, n_keys, ROWS, PART)
    elif RULE == "powers":
        beta = 1.0 / (tl.load(ALPHA + head) - 1.0)
        reach = powers_reach(behind, beta, missing, ROWS)
    else:
        n_kept = tl.load(KEPT + n_keys).to(tl.float32)
        lowest = rounded(rounded(lowest) - best)
        reach, n_reached, n_larger = kept_reach(behind, lowest, n_keys.to(tl.float32), n_kept)
        last = number_of_last(behind, reach, n_kept - n_larger, n_reached <= n_kept, ROWS, PART)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in tl.range(0, 2 * N_PAIRS * PART, 2 * PART, num_stages=3):
        key_number = start + tl.arange(0, PART)
        value_rows = VALUE + (key_start + key_number).to(tl.int64) * value_stride
        value = load_rows(value_rows, key_number < n_keys, head, HEAD_WIDTH, COLUMNS)
        weights = weigh_pair(first_of(pairs_0), reach, last, key_number, beta, RULE)
        total += tl.sum(weights, 1)
        mixed = product(weights.to(value.dtype), value, mixed, False)
        key_number += PART
        value = load_rows(value_rows + PART * value_stride, key_number < n_keys, head,
                          HEAD_WIDTH, COLUMNS)  # fmt: skip
        weights = weigh_pair(second_of(pairs_0), reach, last, key_number, beta, RULE)
        total += tl.sum(weights, 1)
        mixed = product(weights.to(value.dtype), value, mixed, False)
        pairs_0, pairs_1, pairs_2 = moved(pairs_1), moved(pairs_2), moved(pairs_3)
    # a removed head gives nothing
    inverse = tl.where(is_alive, 1.0 / total, 0.0)
    mixed = tl.where(is_alive, mixed * inverse[:, None], 0.0)
    size = store_mixed(MIXED, mixed, query_place, query_live, head, N_HEADS, HEAD_WIDTH, COLUMNS)
    if WITH_HEAD_SIZE:
        tl.store(HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head, size)
    if IMPORTANCE != "none":
        to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_start
        for place in tl.static_range(2 * N_PAIRS):
            key_number = place * PART + tl.arange(0, PART)
            affinity = first_of(behind[place // 2])
            if place % 2 == 1:
                affinity = second_of(behind[place // 2])
            weights = weigh_pair(affinity, reach, last, key_number, beta, RULE) * inverse[:, None]
            weights = tl.where(is_alive, weights, 0.0)
            key_live = key_number < n_keys
            value_rows = VALUE + (key_start + key_number).to(tl.int64) * value_stride
            received = received_by_key(weights, value_rows, query_live, key_live, head,
                                       HEAD_WIDTH, COLUMNS, PART, IMPORTANCE)  # fmt: skip
            tl.store(to_received + key_number, received, mask=key_live)
