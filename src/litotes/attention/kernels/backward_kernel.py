"""The gradient of attention over packed texts: nothing is solved again, nothing added in a race.

With g = ∂mixed · valueᵀ, s the slope of the weights (softmax: w; entmax: w^{2−α}) and each row's
mean q = Σ s g / Σ s (attention/simplex.py has the equations):

    ∂affinity = s (g − q)       ∂query = ∂affinity · key / √d
    ∂value    = wᵀ · ∂mixed     ∂key   = ∂affinityᵀ · query / √d

One kernel has a query's whole row and writes ∂query and q; with q the other goes key by key.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.attention.kernels.forward_kernel import affinities, distance_bias, keeps_weight
from litotes.attention.kernels.row_weights import SMALLEST, weigh_again


@triton.jit
def slopes(weights, alpha, RULE: tl.constexpr):
    """How fast each weight follows its affinity."""
    if RULE == "squares":
        slope = tl.sqrt(weights)
    elif RULE == "lines":
        slope = tl.where(weights == weights, (weights > 0.0).to(tl.float32), weights)
    elif RULE == "powers":
        slope = weights * tl.exp((1.0 - alpha) * tl.log(tl.maximum(weights, SMALLEST)))
    else:
        slope = weights
    return slope


@triton.jit
def exp_beyond_line(y):
    """e^y − 1 − y for y ≥ 0; by its series where the difference would lose its digits."""
    tail = 1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0 + y / 5040.0))
    series = y * y * (0.5 + y * (1.0 / 6.0 + y * tail))
    return tl.where(y < 0.5, series, tl.exp(y) - 1.0 - y)


@triton.jit
def is_chosen(CHOSEN, row, key_number, live, FARTHEST: tl.constexpr):
    """Whether the forward pass chose a key. row, key_number, live: broadcast to one shape."""
    words = tl.load(
        CHOSEN + row.to(tl.int64) * (FARTHEST // 32) + key_number // 32, mask=live, other=0
    )
    return (words >> (key_number % 32)) & 1 != 0


@triton.jit
def row_numbers(ROW_NUMBERS, row, live, n_rows):
    """What the forward pass wrote of each row: best, reach, inverse. A dead row has no weights."""
    best = tl.load(ROW_NUMBERS + row, mask=live, other=0.0)
    reach = tl.load(ROW_NUMBERS + n_rows + row, mask=live, other=1.0)
    inverse = tl.load(ROW_NUMBERS + 2 * n_rows + row, mask=live, other=0.0)
    return best, reach, inverse


@triton.jit(do_not_specialize=["n_rows_apart"])
def query_gradient(
    QUERY, KEY, VALUE, TO_MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES,
    ALPHA, ORIGIN, BUCKETS, BIAS, ALIVE, SEED, ROW_NUMBERS, CHOSEN,
    TO_QUERY, ROW_MEAN, TO_ALPHA, TO_BIAS,
    query_stride, key_stride, value_stride, to_query_stride, n_rows_apart, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr,
    TILE_ROWS: tl.constexpr, ROWS: tl.constexpr, SPAN: tl.constexpr, FARTHEST: tl.constexpr,
    SHIFT: tl.constexpr, N_BUCKETS: tl.constexpr, RULE: tl.constexpr, CHOOSES: tl.constexpr,
    PRECISE: tl.constexpr, WITH_ALPHA: tl.constexpr, WITH_BIAS: tl.constexpr,
    WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (part of a tile, attention_head); a part is ROWS of the tile's TILE_ROWS queries.

    ROW_MEAN, TO_ALPHA: (attention_head, piece). TO_BIAS: (program, attention_head, bucket). What
    belongs to no text, or to a removed head, is not written.
    """
    head = tl.program_id(1)
    tile = tl.program_id(0) // (TILE_ROWS // ROWS)
    part_of_tile = tl.program_id(0) % (TILE_ROWS // ROWS)
    text = tl.load(TILES + 2 * tile)
    slot = tl.load(TILES + 2 * tile + 1)
    if text < 0:
        return
    if WITH_ALIVE:
        if (tl.load(ALIVE + text) >> head) & 1 == 0:
            return
    query_start = tl.load(QUERY_BOUNDS + text)
    n_queries = tl.load(QUERY_BOUNDS + text + 1) - query_start
    key_start = tl.load(KEY_BOUNDS + text)
    n_keys = tl.load(KEY_BOUNDS + text + 1) - key_start
    query_number = slot * TILE_ROWS + part_of_tile * ROWS + tl.arange(0, ROWS) - SHIFT
    key_number = tl.arange(0, SPAN)
    query_live = (query_number >= 0) & (query_number < n_queries)
    key_live = key_number < n_keys
    query_place = query_start + query_number
    key_place = key_start + key_number
    key_rows = KEY + key_place.to(tl.int64) * key_stride
    affinity = affinities(
        QUERY + query_place.to(tl.int64) * query_stride, key_rows, query_live, key_live,
        head, scale, HEAD_WIDTH, STEP, ROWS, SPAN, PRECISE,
    )  # fmt: skip
    if WITH_BIAS:
        bias, bucket = distance_bias(
            ORIGIN, BUCKETS, BIAS, key_start + query_number, key_place, query_live, key_live,
            head, N_HEADS, FARTHEST,
        )  # fmt: skip
        affinity += bias
    live = query_live[:, None] & key_live[None, :]
    row = head * n_rows_apart + query_place
    if CHOOSES:
        counts = is_chosen(CHOSEN, row[:, None], key_number[None, :], live, FARTHEST)
    else:
        counts = live
    affinity = tl.where(counts, affinity, -float("inf"))
    best, reach, inverse = row_numbers(ROW_NUMBERS, row, query_live, N_HEADS * n_rows_apart)
    alpha = 2.0
    if RULE == "powers":
        alpha = tl.load(ALPHA + head)
    weights = weigh_again(
        affinity,
        best[:, None],
        reach[:, None],
        inverse[:, None],
        1.0 / (alpha - 1.0),
        RULE,
        PRECISE,
    )
    pull = affinities(
        TO_MIXED + query_place.to(tl.int64) * (N_HEADS * HEAD_WIDTH),
        VALUE + key_place.to(tl.int64) * value_stride, query_live, key_live,
        head, 1.0, HEAD_WIDTH, STEP, ROWS, SPAN, PRECISE,
    )  # fmt: skip
    if WITH_DROPOUT:
        kept = keeps_weight(
            SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS, FARTHEST
        )
        pull = tl.where(kept, pull / (1.0 - dropout), 0.0)
    slope = slopes(weights, alpha, RULE)
    mean = tl.sum(slope * pull, 1) / tl.where(query_live, tl.sum(slope, 1), 1.0)
    tl.store(ROW_MEAN + row, mean, mask=query_live)
    centred = pull - mean[:, None]
    if WITH_ALPHA:
        y = (1.0 - alpha) * tl.log(tl.maximum(weights, SMALLEST))
        total = tl.sum(weights * centred * exp_beyond_line(y), 1)
        tl.store(TO_ALPHA + row, -total / ((alpha - 1.0) * (alpha - 1.0)), mask=query_live)
    to_affinity = slope * centred
    if WITH_BIAS:
        to_bias = TO_BIAS + (tl.program_id(0) * N_HEADS + head) * N_BUCKETS
        for number in range(N_BUCKETS):
            tl.store(to_bias + number, tl.sum(tl.where(bucket == number, to_affinity, 0.0)))
    used = to_affinity.to(KEY.dtype.element_ty)
    to_query_rows = TO_QUERY + query_place.to(tl.int64) * to_query_stride
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        part = start + tl.arange(0, STEP)
        inside = (part < HEAD_WIDTH)[None, :]
        place = (head * HEAD_WIDTH + part)[None, :]
        key = tl.load(key_rows[:, None] + place, mask=key_live[:, None] & inside, other=0.0)
        if PRECISE:
            to_query = tl.dot(used, key, input_precision="tf32x3")
        else:
            to_query = tl.dot(used, key)
        rounded = (to_query * scale).to(TO_QUERY.dtype.element_ty)
        tl.store(to_query_rows[:, None] + place, rounded, mask=query_live[:, None] & inside)


@triton.jit(do_not_specialize=["n_rows_apart"])
def key_value_gradient(
    QUERY, KEY, VALUE, TO_MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES,
    ALPHA, ORIGIN, BUCKETS, BIAS, ALIVE, SEED, ROW_NUMBERS, CHOSEN, ROW_MEAN,
    TO_KEY, TO_VALUE,
    query_stride, key_stride, value_stride, to_key_stride, to_value_stride, n_rows_apart,
    scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    TILE_ROWS: tl.constexpr, KEYS: tl.constexpr, QUERIES: tl.constexpr, FARTHEST: tl.constexpr,
    RULE: tl.constexpr, CHOOSES: tl.constexpr, PRECISE: tl.constexpr,
    WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (part of a tile, attention_head). Tiles are those of the keys, TILE_ROWS each;
    where KEYS is more than that, a program also does its neighbours' keys, and they return at once.

    WIDTH: HEAD_WIDTH or the next power of 2. Everything lies as (key, query): so the weights are a
    product's left side without being turned.
    """
    N_PARTS: tl.constexpr = (TILE_ROWS + KEYS - 1) // KEYS
    head = tl.program_id(1)
    tile = tl.program_id(0) // N_PARTS
    text = tl.load(TILES + 2 * tile)
    first_key = tl.load(TILES + 2 * tile + 1) * TILE_ROWS + (tl.program_id(0) % N_PARTS) * KEYS
    if (text < 0) | (first_key % KEYS != 0):
        return
    if WITH_ALIVE:
        if (tl.load(ALIVE + text) >> head) & 1 == 0:
            return
    query_start = tl.load(QUERY_BOUNDS + text)
    n_queries = tl.load(QUERY_BOUNDS + text + 1) - query_start
    key_start = tl.load(KEY_BOUNDS + text)
    key_number = first_key + tl.arange(0, KEYS)
    key_place = key_start + key_number
    key_live = key_place < tl.load(KEY_BOUNDS + text + 1)
    part = tl.arange(0, WIDTH)
    place = (head * HEAD_WIDTH + part)[None, :]
    inside = (part < HEAD_WIDTH)[None, :]
    live_key = key_live[:, None] & inside
    key_rows = key_place.to(tl.int64)[:, None]
    key = tl.load(KEY + key_rows * key_stride + place, mask=live_key, other=0.0)
    value = tl.load(VALUE + key_rows * value_stride + place, mask=live_key, other=0.0)
    alpha = 2.0
    if RULE == "powers":
        alpha = tl.load(ALPHA + head)
    if WITH_BIAS:
        key_origin = tl.maximum(tl.load(ORIGIN + key_place, mask=key_live, other=0), 0)
    to_key = tl.zeros([KEYS, WIDTH], tl.float32)
    to_value = tl.zeros([KEYS, WIDTH], tl.float32)
    for start in range(0, n_queries, QUERIES):
        query_number = start + tl.arange(0, QUERIES)
        query_live = query_number < n_queries
        query_place = query_start + query_number
        live_query = query_live[:, None] & inside
        query_rows = query_place.to(tl.int64)[:, None]
        query = tl.load(QUERY + query_rows * query_stride + place, mask=live_query, other=0.0)
        to_mixed_rows = TO_MIXED + query_rows * (N_HEADS * HEAD_WIDTH)
        to_mixed = tl.load(to_mixed_rows + place, mask=live_query, other=0.0)
        if PRECISE:
            affinity = tl.dot(key, tl.trans(query), input_precision="tf32x3") * scale
            pull = tl.dot(value, tl.trans(to_mixed), input_precision="tf32x3")
        else:
            affinity = tl.dot(key, tl.trans(query)) * scale
            pull = tl.dot(value, tl.trans(to_mixed))
        if WITH_BIAS:
            at = ORIGIN + key_start + query_number
            query_origin = tl.maximum(tl.load(at, mask=query_live, other=0), 0)
            ahead = key_origin[:, None] - query_origin[None, :]
            bucket = tl.load(BUCKETS + ahead + FARTHEST)
            affinity += tl.load(BIAS + bucket * N_HEADS + head)
        row = head * n_rows_apart + query_place
        if CHOOSES:
            live = key_live[:, None] & query_live[None, :]
            chosen = is_chosen(CHOSEN, row[None, :], key_number[:, None], live, FARTHEST)
            affinity = tl.where(chosen, affinity, -float("inf"))
        best, reach, inverse = row_numbers(ROW_NUMBERS, row, query_live, N_HEADS * n_rows_apart)
        weights = weigh_again(
            affinity,
            best[None, :],
            reach[None, :],
            inverse[None, :],
            1.0 / (alpha - 1.0),
            RULE,
            PRECISE,
        )
        used = weights
        if WITH_DROPOUT:
            kept = keeps_weight(
                SEED, query_place[None, :], key_number[:, None], head, dropout, N_HEADS, FARTHEST
            )
            used = tl.where(kept, weights / (1.0 - dropout), 0.0)
            pull = tl.where(kept, pull / (1.0 - dropout), 0.0)
        mean = tl.load(ROW_MEAN + row, mask=query_live, other=0.0)
        to_affinity = (slopes(weights, alpha, RULE) * (pull - mean[None, :])).to(query.dtype)
        used = used.to(to_mixed.dtype)
        if PRECISE:
            to_value = tl.dot(used, to_mixed, to_value, input_precision="tf32x3")
            to_key = tl.dot(to_affinity, query, to_key, input_precision="tf32x3")
        else:
            to_value = tl.dot(used, to_mixed, to_value)
            to_key = tl.dot(to_affinity, query, to_key)
    rounded = (to_key * scale).to(TO_KEY.dtype.element_ty)
    tl.store(TO_KEY + key_rows * to_key_stride + place, rounded, mask=live_key)
    rounded = to_value.to(TO_VALUE.dtype.element_ty)
    tl.store(TO_VALUE + key_rows * to_value_stride + place, rounded, mask=live_key)
