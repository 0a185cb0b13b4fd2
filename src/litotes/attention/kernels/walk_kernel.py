"""Softmax over texts too long for the chip: one program walks its text's keys block by block.

    best, total and output follow as the blocks come (Milakov and Gimelshein 2018, arXiv 1805.02867;
    Dao et al. 2022, arXiv 2205.14135)

What each key received needs the whole row's total first: a second walk, only where it is asked for.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.attention.kernels.forward_kernel import affinities, distance_bias, keeps_weight


@triton.jit(do_not_specialize=["n_slots_apart", "n_rows_apart", "n_slots"])
def walk_keys(
    QUERY, KEY, VALUE, MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES, ORIGIN, BUCKETS, BIAS, ALIVE, SEED,
    RECEIVED, HEAD_SIZE, ROW_NUMBERS,
    query_stride, key_stride, value_stride, n_slots_apart, n_rows_apart, n_slots, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, FARTHEST: tl.constexpr,
    PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr,
    WITH_DROPOUT: tl.constexpr, IMPORTANCE: tl.constexpr, WITH_HEAD_SIZE: tl.constexpr,
    WITH_ROW_NUMBERS: tl.constexpr,
):  # fmt: skip
    """As `attend_tile`, whose arguments these are. BLOCK: keys at a time."""
    head = tl.program_id(1)
    text = tl.load(TILES + 2 * tl.program_id(0))
    slot = tl.load(TILES + 2 * tl.program_id(0) + 1)
    if text < 0:
        return
    query_start = tl.load(QUERY_BOUNDS + text)
    n_queries = tl.load(QUERY_BOUNDS + text + 1) - query_start
    key_start = tl.load(KEY_BOUNDS + text)
    n_keys = tl.load(KEY_BOUNDS + text + 1) - key_start
    query_number = slot * ROWS + tl.arange(0, ROWS)
    query_live = query_number < n_queries
    query_place = query_start + query_number
    query_rows = QUERY + query_place.to(tl.int64) * query_stride
    column = tl.arange(0, COLUMNS)
    n_used = n_keys
    if WITH_ALIVE:
        # a removed head sees no keys: it gathers nothing and gives nothing
        n_used = tl.where((tl.load(ALIVE + text) >> head) & 1 == 1, n_keys, 0)
    best = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, n_used, BLOCK):
        key_number = start + tl.arange(0, BLOCK)
        key_live = key_number < n_keys
        key_place = key_start + key_number
        key_rows = KEY + key_place.to(tl.int64) * key_stride
        affinity = affinities(
            query_rows, key_rows, query_live, key_live, head, scale,
            HEAD_WIDTH, COLUMNS, ROWS, BLOCK, PRECISE,
        )  # fmt: skip
        if WITH_BIAS:
            bias, _ = distance_bias(
                ORIGIN, BUCKETS, BIAS, (key_start + query_number)[:, None], key_place[None, :],
                query_live[:, None], key_live[None, :], head, N_HEADS, FARTHEST,
            )  # fmt: skip
            affinity += bias
        affinity = tl.where(key_live[None, :], affinity, -float("inf"))
        better = tl.maximum(best, tl.max(affinity, 1))
        weights = tl.exp(affinity - better[:, None])
        fading = tl.exp(best - better)
        total = total * fading + tl.sum(weights, 1)
        best = better
        if WITH_DROPOUT:
            kept = keeps_weight(
                SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS, FARTHEST
            )
            weights = tl.where(kept, weights / (1.0 - dropout), 0.0)
        place = key_place.to(tl.int64)[:, None] * value_stride + head * HEAD_WIDTH + column[None, :]
        inside = key_live[:, None] & (column < HEAD_WIDTH)[None, :]
        value = tl.load(VALUE + place, mask=inside, other=0.0)
        used = weights.to(VALUE.dtype.element_ty)
        if PRECISE:
            mixed = tl.dot(used, value, mixed * fading[:, None], input_precision="tf32x3")
        else:
            mixed = tl.dot(used, value, mixed * fading[:, None])
    inverse = 1.0 / tl.where(n_used > 0, total, 1.0)
    rounded = (mixed * inverse[:, None]).to(MIXED.dtype.element_ty)
    to = MIXED + query_place.to(tl.int64)[:, None] * (N_HEADS * HEAD_WIDTH)
    to += head * HEAD_WIDTH + column[None, :]
    tl.store(to, rounded, mask=query_live[:, None] & (column < HEAD_WIDTH)[None, :])
    if WITH_HEAD_SIZE:
        size = tl.where(query_live[:, None], tl.abs(rounded.to(tl.float32)), 0.0)
        tl.store(HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head, tl.sum(tl.sum(size, 1), 0))
    if WITH_ROW_NUMBERS:
        to_numbers = ROW_NUMBERS + head * n_rows_apart + query_place
        tl.store(to_numbers, best, mask=query_live)
        tl.store(to_numbers + N_HEADS * n_rows_apart, tl.zeros_like(best), mask=query_live)
        tl.store(to_numbers + 2 * N_HEADS * n_rows_apart, inverse, mask=query_live)
    if IMPORTANCE != "none":
        for start in range(0, n_keys, BLOCK):
            key_number = start + tl.arange(0, BLOCK)
            key_live = key_number < n_keys
            key_place = key_start + key_number
            key_rows = KEY + key_place.to(tl.int64) * key_stride
            affinity = affinities(
                query_rows, key_rows, query_live, key_live, head, scale,
                HEAD_WIDTH, COLUMNS, ROWS, BLOCK, PRECISE,
            )  # fmt: skip
            if WITH_BIAS:
                bias, _ = distance_bias(
                    ORIGIN, BUCKETS, BIAS, (key_start + query_number)[:, None], key_place[None, :],
                    query_live[:, None], key_live[None, :], head, N_HEADS, FARTHEST,
                )  # fmt: skip
                affinity += bias
            weights = tl.exp(affinity - best[:, None]) * inverse[:, None]
            received = tl.sum(tl.where(query_live[:, None], weights, 0.0), 0)
            received = tl.where(n_used > 0, received, 0.0)
            if IMPORTANCE == "value":
                place = (
                    key_place.to(tl.int64)[:, None] * value_stride
                    + head * HEAD_WIDTH
                    + column[None, :]
                )
                inside = key_live[:, None] & (column < HEAD_WIDTH)[None, :]
                value = tl.load(VALUE + place, mask=inside, other=0.0).to(tl.float32)
                received *= tl.sqrt(tl.sum(value * value, 1))
            to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_place
            tl.store(to_received, received, mask=key_live)
