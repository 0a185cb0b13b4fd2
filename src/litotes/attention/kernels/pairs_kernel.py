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

from litotes.attention.kernels.forward_kernel import product, received_by_key, store_nothing
from litotes.attention.kernels.pair_rules import (
    N_PAIRS,
    block_of,
    for_all,
    kept_reach,
    number_of_last,
    powers_reach,
    rounded,
    squares_reach,
    weigh_pair,
)
from litotes.attention.kernels.pairs import first_of, moved, pair, plus, second_of
from litotes.attention.kernels.walk_kernel import key_affinities, load_rows, store_mixed


@triton.jit
def gather_pairs(
    query, KEY, query_number, query_live, n_keys, ORIGIN, BUCKETS, BIAS, key_start, key_stride,
    head, scale, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr, FARTHEST: tl.constexpr, RULE: tl.constexpr,
    WITH_BIAS: tl.constexpr,
):  # fmt: skip
    """How far all keys are behind their row's best, as pairs, and the smallest of them."""
    best = tl.full([ROWS], -float("inf"), tl.float32)
    lowest = tl.full([ROWS], float("inf"), tl.float32)
    pairs_0 = tl.zeros([ROWS, PART], tl.int32)
    pairs_1 = tl.zeros([ROWS, PART], tl.int32)
    pairs_2 = tl.zeros([ROWS, PART], tl.int32)
    pairs_3 = tl.zeros([ROWS, PART], tl.int32)
    # a bias is looked up for every pair: loaded ahead as well it would not fit the chip
    N_AHEAD: tl.constexpr = 1 if WITH_BIAS else 3
    for start in tl.range(0, 2 * N_PAIRS * PART, 2 * PART, num_stages=N_AHEAD):
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
            live_first = tl.where((key_number < n_keys)[None, :], first, nothing)
            live_second = tl.where((key_number + PART < n_keys)[None, :], second, nothing)
            lowest = tl.minimum(lowest, tl.min(tl.minimum(live_first, live_second), 1))
        pairs_0, pairs_1, pairs_2 = moved(pairs_1), moved(pairs_2), moved(pairs_3)
        pairs_3 = pair(first, second)
    best = rounded(best)
    less = for_all(-best)
    pairs_0, pairs_1 = plus(pairs_0, less), plus(pairs_1, less)
    pairs_2, pairs_3 = plus(pairs_2, less), plus(pairs_3, less)
    return pairs_0, pairs_1, pairs_2, pairs_3, rounded(rounded(lowest) - best)


@triton.jit
def weigh_rows(behind, lowest, ALPHA, KEPT, n_keys, head, missing,
               ROWS: tl.constexpr, PART: tl.constexpr, RULE: tl.constexpr):  # fmt: skip
    """From which each key's weight follows: the rows' reach and last number, and β."""
    beta, last = 2.0, tl.zeros([ROWS], tl.int32)
    if RULE == "squares":
        reach = squares_reach(behind, missing, n_keys, ROWS, PART)
    elif RULE == "powers":
        beta = 1.0 / (tl.load(ALPHA + head) - 1.0)
        reach = powers_reach(behind, beta, missing, n_keys, ROWS, PART)
    else:
        n_kept = tl.load(KEPT + n_keys).to(tl.float32)
        reach, n_reached, n_larger = kept_reach(behind, lowest, n_keys.to(tl.float32), n_kept)
        last = number_of_last(behind, reach, n_kept - n_larger, n_reached <= n_kept, ROWS, PART)
    return reach, last, beta


@triton.jit
def mix_pairs(
    pairs_0, pairs_1, pairs_2, pairs_3, reach, last, beta, VALUE, key_start, n_keys, value_stride,
    head, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    PART: tl.constexpr, RULE: tl.constexpr,
):  # fmt: skip
    """The values' sum by weights that are not yet divided, and the weights' sum."""
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
    return mixed, total


@triton.jit
def store_received(
    to_received, behind, reach, last, beta, inverse, VALUE, key_start, n_keys, value_stride,
    query_live, head, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr, PART: tl.constexpr,
    RULE: tl.constexpr, IMPORTANCE: tl.constexpr,
):  # fmt: skip
    """What each key received, as in `attend_tile`."""
    for place in tl.static_range(2 * N_PAIRS):
        key_number = place * PART + tl.arange(0, PART)
        affinity = block_of(behind, place)
        weights = weigh_pair(affinity, reach, last, key_number, beta, RULE) * inverse[:, None]
        key_live = key_number < n_keys
        value_rows = VALUE + (key_start + key_number).to(tl.int64) * value_stride
        received = received_by_key(weights, query_live.to(tl.float32), value_rows, key_live, head,
                                   HEAD_WIDTH, COLUMNS, PART, IMPORTANCE, False)  # fmt: skip
        tl.store(to_received + key_number, received, mask=key_live)


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
    query_far = query_place.to(tl.int64)
    to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_start
    to_size = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
    if WITH_ALIVE:
        if (tl.load(ALIVE + text) >> head) & 1 == 0:
            key_number = tl.arange(0, 2 * N_PAIRS * PART)
            mixed_rows = MIXED + query_far * (N_HEADS * HEAD_WIDTH)
            store_nothing(mixed_rows, to_received + key_number, to_size, query_live,
                          key_number < n_keys, head, HEAD_WIDTH, COLUMNS, ROWS, 2 * N_PAIRS * PART,
                          IMPORTANCE, WITH_HEAD_SIZE)  # fmt: skip
            return
    query = load_rows(QUERY + query_far * query_stride, query_live, head,
                      HEAD_WIDTH, COLUMNS)  # fmt: skip
    pairs_0, pairs_1, pairs_2, pairs_3, lowest = gather_pairs(
        query, KEY, query_number, query_live, n_keys, ORIGIN, BUCKETS, BIAS, key_start, key_stride,
        head, scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, PART, FARTHEST, RULE,
        WITH_BIAS)  # fmt: skip
    behind = (pairs_0, pairs_1, pairs_2, pairs_3)
    reach, last, beta = weigh_rows(behind, lowest, ALPHA, KEPT, n_keys, head, missing,
                                   ROWS, PART, RULE)  # fmt: skip
    mixed, total = mix_pairs(
        pairs_0, pairs_1, pairs_2, pairs_3, reach, last, beta, VALUE, key_start, n_keys,
        value_stride, head, HEAD_WIDTH, COLUMNS, ROWS, PART, RULE)  # fmt: skip
    inverse = 1.0 / total
    size = store_mixed(MIXED, mixed * inverse[:, None], query_place, query_live, head,
                       N_HEADS, HEAD_WIDTH, COLUMNS)  # fmt: skip
    if WITH_HEAD_SIZE:
        tl.store(to_size, size)
    if IMPORTANCE != "none":
        store_received(to_received, behind, reach, last, beta, inverse, VALUE, key_start, n_keys,
                       value_stride, query_live, head, HEAD_WIDTH, COLUMNS, PART, RULE,
                       IMPORTANCE)  # fmt: skip
