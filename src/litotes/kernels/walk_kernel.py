"""Softmax over texts too long for the chip: one program walks its text's keys block by block.

    best, total and output follow as the blocks come (Milakov and Gimelshein 2018, arXiv 1805.02867;
    Dao et al. 2022, arXiv 2205.14135)

What each key received needs the whole row's total first: a second walk, only where it is asked for.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.dropout_kernel import after_dropout
from litotes.kernels.forward_kernel import biased, product, store_row_numbers
from litotes.kernels.received_kernel import store_received, sum_of_squares
from litotes.kernels.row_weights import exp_behind


@triton.jit
def load_rows(rows, live, head, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr):
    """An attention head's part of some rows, 0 where there are none. (row, COLUMNS)

    rows: pointers to the rows' first numbers.
    """
    column = tl.arange(0, COLUMNS)[None, :]
    at = rows[:, None] + head * HEAD_WIDTH + column
    return tl.load(at, mask=live[:, None] & (column < HEAD_WIDTH), other=0.0)


@triton.jit
def key_affinities(
    query, key_rows, query_number, key_number, query_live, key_live, ORIGIN, BUCKETS, BIAS,
    key_start, head, scale, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, FARTHEST: tl.constexpr,
    PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr,
):  # fmt: skip
    """With the bias, and −∞ where there is no key. (query, key) query: (query, COLUMNS)"""
    column = tl.arange(0, COLUMNS)[:, None]
    at = key_rows[None, :] + head * HEAD_WIDTH + column
    key = tl.load(at, mask=key_live[None, :] & (column < HEAD_WIDTH), other=0.0)
    affinity = product(query, key, tl.zeros([ROWS, BLOCK], tl.float32), PRECISE) * scale
    return biased(affinity, query_number, key_number, query_live, key_live, ORIGIN, BUCKETS, BIAS,
                  key_start, head, N_HEADS, FARTHEST, WITH_BIAS)  # fmt: skip


@triton.jit
def block_affinities(
    start, query, KEY, query_number, query_live, ORIGIN, BUCKETS, BIAS, key_start, n_keys,
    key_stride, head, scale, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, FARTHEST: tl.constexpr,
    PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr,
):  # fmt: skip
    """Of the block of keys from `start` on; the keys' numbers, which of them there are, and their
    rows.
    """
    key_number = start + tl.arange(0, BLOCK)
    key_live = key_number < n_keys
    key_far = (key_start + key_number).to(tl.int64)
    affinity = key_affinities(
        query, KEY + key_far * key_stride, query_number, key_number, query_live, key_live,
        ORIGIN, BUCKETS, BIAS, key_start, head, scale,
        N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, BLOCK, FARTHEST, PRECISE, WITH_BIAS)  # fmt: skip
    return affinity, key_number, key_live, key_far


@triton.jit
def gather_block(
    start, best, total, mixed, query, KEY, VALUE, query_number, query_live, query_place,
    ORIGIN, BUCKETS, BIAS, SEED, key_start, n_keys, key_stride, value_stride, head, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr, FARTHEST: tl.constexpr, PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr,
    WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Best, total and output after one more block of keys."""
    affinity, key_number, key_live, key_far = block_affinities(
        start, query, KEY, query_number, query_live, ORIGIN, BUCKETS, BIAS, key_start, n_keys,
        key_stride, head, scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, BLOCK, FARTHEST, PRECISE,
        WITH_BIAS)  # fmt: skip
    better = tl.maximum(best, tl.max(affinity, 1))
    weights = exp_behind(affinity, better[:, None])
    fading = exp_behind(best, better)
    total = total * fading + tl.sum(weights, 1)
    weights = after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS,
                            WITH_DROPOUT)  # fmt: skip
    value = load_rows(VALUE + key_far * value_stride, key_live, head, HEAD_WIDTH, COLUMNS)
    mixed = product(weights.to(value.dtype), value, mixed * fading[:, None], PRECISE)
    return better, total, mixed


@triton.jit
def store_received_in_block(
    to_received, start, best, times, query, KEY, VALUE, query_number, query_live,
    ORIGIN, BUCKETS, BIAS, key_start, n_keys, n_used, key_stride, value_stride, head, scale,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr, FARTHEST: tl.constexpr, PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr,
    WITH_ALIVE: tl.constexpr, IMPORTANCE: tl.constexpr,
):  # fmt: skip
    """What a block's keys received."""
    affinity, key_number, key_live, key_far = block_affinities(
        start, query, KEY, query_number, query_live, ORIGIN, BUCKETS, BIAS, key_start, n_keys,
        key_stride, head, scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, BLOCK, FARTHEST, PRECISE,
        WITH_BIAS)  # fmt: skip
    weights = exp_behind(affinity, best[:, None])  # before they are divided by their sum
    if WITH_ALIVE:
        weights = tl.where(n_used > 0, weights, 0.0)
    squares = tl.zeros([BLOCK], tl.float32)
    if IMPORTANCE == "value":
        value_rows = VALUE + key_far * value_stride
        squares = sum_of_squares(load_rows(value_rows, key_live, head, HEAD_WIDTH, COLUMNS))
    store_received(to_received + key_number, weights, times, squares, key_live,
                   ROWS, IMPORTANCE, PRECISE)  # fmt: skip


@triton.jit
def store_mixed(MIXED, mixed, query_place, query_live, head, N_HEADS: tl.constexpr,
                HEAD_WIDTH: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    """Returns the sum of what it stored, without signs."""
    column = tl.arange(0, COLUMNS)[None, :]
    rounded = mixed.to(MIXED.dtype.element_ty)
    to = MIXED + query_place.to(tl.int64)[:, None] * (N_HEADS * HEAD_WIDTH) + head * HEAD_WIDTH
    tl.store(to + column, rounded, mask=query_live[:, None] & (column < HEAD_WIDTH))
    size = tl.where(query_live[:, None], tl.abs(rounded.to(tl.float32)), 0.0)
    return tl.sum(tl.sum(size, 1), 0)


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
    head, tile = tl.program_id(1), tl.program_id(0)
    text, slot = tl.load(TILES + 2 * tile), tl.load(TILES + 2 * tile + 1)
    if text < 0:
        return
    query_start, key_start = tl.load(QUERY_BOUNDS + text), tl.load(KEY_BOUNDS + text)
    n_queries = tl.load(QUERY_BOUNDS + text + 1) - query_start
    n_keys = tl.load(KEY_BOUNDS + text + 1) - key_start
    query_number = slot * ROWS + tl.arange(0, ROWS)
    query_live = query_number < n_queries
    query_place = query_start + query_number
    query = load_rows(QUERY + query_place.to(tl.int64) * query_stride, query_live, head,
                      HEAD_WIDTH, COLUMNS)  # fmt: skip
    n_used = n_keys
    if WITH_ALIVE:
        # a removed head sees no keys: it gathers nothing and gives nothing
        n_used = tl.where((tl.load(ALIVE + text) >> head) & 1 == 1, n_keys, 0)
    best = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, n_used, BLOCK):
        best, total, mixed = gather_block(
            start, best, total, mixed, query, KEY, VALUE, query_number, query_live,
            query_place, ORIGIN, BUCKETS, BIAS, SEED, key_start, n_keys, key_stride, value_stride,
            head, scale, dropout, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, BLOCK, FARTHEST,
            PRECISE, WITH_BIAS, WITH_DROPOUT)  # fmt: skip
    inverse = 1.0 / tl.where(n_used > 0, total, 1.0)
    size = store_mixed(MIXED, mixed * inverse[:, None], query_place, query_live, head,
                       N_HEADS, HEAD_WIDTH, COLUMNS)  # fmt: skip
    if WITH_HEAD_SIZE:
        tl.store(HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head, size)
    if WITH_ROW_NUMBERS:
        to_numbers = ROW_NUMBERS + head * n_rows_apart + query_place
        n_rows = N_HEADS * n_rows_apart
        store_row_numbers(to_numbers, best, tl.zeros_like(best), inverse, query_live, n_rows)
    if IMPORTANCE != "none":
        to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_start
        times = tl.where(query_live, inverse, 0.0)
        for start in range(0, n_keys, BLOCK):
            store_received_in_block(
                to_received, start, best, times, query, KEY, VALUE, query_number, query_live,
                ORIGIN, BUCKETS, BIAS, key_start, n_keys, n_used, key_stride, value_stride, head,
                scale, N_HEADS, HEAD_WIDTH, COLUMNS, ROWS, BLOCK, FARTHEST, PRECISE, WITH_BIAS,
                WITH_ALIVE, IMPORTANCE)  # fmt: skip
