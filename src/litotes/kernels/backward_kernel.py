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

from litotes.kernels.dropout_kernel import keeps_weight
from litotes.kernels.forward_kernel import affinities, distance_bias, product
from litotes.kernels.row_weights import SMALLEST, weigh_again


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
def has_nothing(ALIVE, text, head, WITH_ALIVE: tl.constexpr):
    """Whether a tile is without a text, or its text without this attention head."""
    nothing = text < 0
    if WITH_ALIVE:
        alive = tl.load(ALIVE + text, mask=text >= 0, other=0)
        nothing = nothing | ((alive >> head) & 1 == 0)
    return nothing


@triton.jit
def known_weights(
    affinity, ROW_NUMBERS, CHOSEN, row, key_number, query_live, key_live, alpha, n_rows,
    FARTHEST: tl.constexpr, RULE: tl.constexpr, CHOOSES: tl.constexpr, PRECISE: tl.constexpr,
):  # fmt: skip
    """The weights of the forward pass, 0 where there is no query or no key. All that goes by query
    or by key is broadcast to the affinities' shape.
    """
    counts = query_live & key_live
    if CHOOSES:
        at = row.to(tl.int64) * (FARTHEST // 32) + key_number // 32
        words = tl.load(CHOSEN + at, mask=counts, other=0)
        counts = (words >> (key_number % 32)) & 1 != 0
    best = tl.load(ROW_NUMBERS + row, mask=query_live, other=0.0)
    reach = tl.load(ROW_NUMBERS + n_rows + row, mask=query_live, other=1.0)
    inverse = tl.load(ROW_NUMBERS + 2 * n_rows + row, mask=query_live, other=0.0)
    affinity = tl.where(counts, affinity, -float("inf"))
    return weigh_again(affinity, best, reach, inverse, 1.0 / (alpha - 1.0), RULE, PRECISE)


@triton.jit
def pull_on_alpha(weights, centred, alpha):
    """A row's ∂α from g − q. (query,)"""
    y = (1.0 - alpha) * tl.log(tl.maximum(weights, SMALLEST))
    # e^y − 1 − y; by its series where the difference would lose its digits
    tail = 1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0 + y / 5040.0))
    series = y * y * (0.5 + y * (1.0 / 6.0 + y * tail))
    beyond = tl.where(y < 0.5, series, tl.exp(y) - 1.0 - y)
    return -tl.sum(weights * centred * beyond, 1) / ((alpha - 1.0) * (alpha - 1.0))


@triton.jit
def store_query_gradient(
    to_affinity, key_rows, to_rows, query_live, key_live, head, scale,
    HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, PRECISE: tl.constexpr,
):  # fmt: skip
    """∂affinity · key / √d, the head's width in steps."""
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        part = start + tl.arange(0, STEP)
        inside = (part < HEAD_WIDTH)[None, :]
        place = (head * HEAD_WIDTH + part)[None, :]
        key = tl.load(key_rows[:, None] + place, mask=key_live[:, None] & inside, other=0.0)
        nothing = tl.zeros([ROWS, STEP], tl.float32)
        to_query = product(to_affinity.to(key.dtype), key, nothing, PRECISE) * scale
        to = to_rows[:, None] + place
        tl.store(to, to_query.to(key.dtype), mask=query_live[:, None] & inside)


@triton.jit
def store_bias_gradient(to_bias, bucket, to_affinity, N_BUCKETS: tl.constexpr):
    for number in range(N_BUCKETS):
        tl.store(to_bias + number, tl.sum(tl.where(bucket == number, to_affinity, 0.0)))


@triton.jit(do_not_specialize=["n_rows_apart"])
def query_gradient(
    QUERY, KEY, VALUE, TO_MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES, ALPHA, ORIGIN, BUCKETS, BIAS,
    ALIVE, SEED, ROW_NUMBERS, CHOSEN, TO_QUERY, ROW_MEAN, TO_ALPHA, TO_BIAS,
    query_stride, key_stride, value_stride, to_query_stride, n_rows_apart, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr, FARTHEST: tl.constexpr,
    TILE_ROWS: tl.constexpr, ROWS: tl.constexpr, SPAN: tl.constexpr, SHIFT: tl.constexpr,
    N_BUCKETS: tl.constexpr, RULE: tl.constexpr, CHOOSES: tl.constexpr, PRECISE: tl.constexpr,
    WITH_ALPHA: tl.constexpr, WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr,
    WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (part of a tile, attention_head); a part is ROWS of the tile's TILE_ROWS queries.

    ROW_MEAN, TO_ALPHA: (attention_head, piece). TO_BIAS: (program, attention_head, bucket).
    """
    head, program = tl.program_id(1), tl.program_id(0)
    tile, part = program // (TILE_ROWS // ROWS), program % (TILE_ROWS // ROWS)
    text, slot = tl.load(TILES + 2 * tile), tl.load(TILES + 2 * tile + 1)
    if has_nothing(ALIVE, text, head, WITH_ALIVE):
        return
    query_start, key_start = tl.load(QUERY_BOUNDS + text), tl.load(KEY_BOUNDS + text)
    query_number = slot * TILE_ROWS + part * ROWS + tl.arange(0, ROWS) - SHIFT
    key_number = tl.arange(0, SPAN)
    query_place, key_place = query_start + query_number, key_start + key_number
    query_live = (query_number >= 0) & (query_place < tl.load(QUERY_BOUNDS + text + 1))
    key_live = key_place < tl.load(KEY_BOUNDS + text + 1)
    row = head * n_rows_apart + query_place
    query_far, key_far = query_place.to(tl.int64), key_place.to(tl.int64)
    key_rows = KEY + key_far * key_stride
    affinity = affinities(QUERY + query_far * query_stride, key_rows, query_live, key_live,
                          head, scale, HEAD_WIDTH, STEP, ROWS, SPAN, PRECISE)  # fmt: skip
    if WITH_BIAS:
        bias, bucket = distance_bias(
            ORIGIN, BUCKETS, BIAS, (key_start + query_number)[:, None], key_place[None, :],
            query_live[:, None], key_live[None, :], head, N_HEADS, FARTHEST)  # fmt: skip
        affinity += bias
    alpha = tl.load(ALPHA + head) if RULE == "powers" else 2.0
    weights = known_weights(
        affinity, ROW_NUMBERS, CHOSEN, row[:, None], key_number[None, :], query_live[:, None],
        key_live[None, :], alpha, N_HEADS * n_rows_apart, FARTHEST, RULE, CHOOSES, PRECISE,
    )  # fmt: skip
    to_mixed_rows = TO_MIXED + query_far * (N_HEADS * HEAD_WIDTH)
    pull = affinities(to_mixed_rows, VALUE + key_far * value_stride, query_live, key_live,
                      head, 1.0, HEAD_WIDTH, STEP, ROWS, SPAN, PRECISE)  # fmt: skip
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS)
        pull = tl.where(kept, pull * (1.0 / (1.0 - dropout)), 0.0)
    slope = slopes(weights, alpha, RULE)
    mean = tl.sum(slope * pull, 1) / tl.where(query_live, tl.sum(slope, 1), 1.0)
    tl.store(ROW_MEAN + row, mean, mask=query_live)
    centred = pull - mean[:, None]
    if WITH_ALPHA:
        tl.store(TO_ALPHA + row, pull_on_alpha(weights, centred, alpha), mask=query_live)
    if WITH_BIAS:
        to_bias = TO_BIAS + (program * N_HEADS + head) * N_BUCKETS
        store_bias_gradient(to_bias, bucket, slope * centred, N_BUCKETS)
    to_rows = TO_QUERY + query_far * to_query_stride
    store_query_gradient(slope * centred, key_rows, to_rows, query_live, key_live,
                         head, scale, HEAD_WIDTH, STEP, ROWS, PRECISE)  # fmt: skip


@triton.jit(do_not_specialize=["n_rows_apart"])
def key_value_gradient(
    QUERY, KEY, VALUE, TO_MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES, ALPHA, ORIGIN, BUCKETS, BIAS,
    ALIVE, SEED, ROW_NUMBERS, CHOSEN, ROW_MEAN, TO_KEY, TO_VALUE,
    query_stride, key_stride, value_stride, to_key_stride, to_value_stride, n_rows_apart,
    scale, dropout, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    TILE_ROWS: tl.constexpr, KEYS: tl.constexpr, QUERIES: tl.constexpr, FARTHEST: tl.constexpr,
    RULE: tl.constexpr, CHOOSES: tl.constexpr, PRECISE: tl.constexpr,
    WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (part of a tile, attention_head). Tiles are those of the keys, TILE_ROWS each;
    where KEYS is more than that, a program does its neighbours' keys too, and they return at once.

    WIDTH: HEAD_WIDTH or the next power of 2.
    """
    N_PARTS: tl.constexpr = (TILE_ROWS + KEYS - 1) // KEYS
    head, tile = tl.program_id(1), tl.program_id(0) // N_PARTS
    text = tl.load(TILES + 2 * tile)
    first_key = tl.load(TILES + 2 * tile + 1) * TILE_ROWS + (tl.program_id(0) % N_PARTS) * KEYS
    if has_nothing(ALIVE, text, head, WITH_ALIVE) | (first_key % KEYS != 0):
        return
    query_start, query_end = tl.load(QUERY_BOUNDS + text), tl.load(QUERY_BOUNDS + text + 1)
    key_start, key_end = tl.load(KEY_BOUNDS + text), tl.load(KEY_BOUNDS + text + 1)
    key_number = first_key + tl.arange(0, KEYS)[:, None]
    key_place = key_start + key_number  # (key, 1), as all that goes by key
    key_live = key_place < key_end
    part = tl.arange(0, WIDTH)[None, :]
    place, inside = head * HEAD_WIDTH + part, part < HEAD_WIDTH
    key_far = key_place.to(tl.int64)
    key = tl.load(KEY + key_far * key_stride + place, mask=key_live & inside, other=0.0)
    value = tl.load(VALUE + key_far * value_stride + place, mask=key_live & inside, other=0.0)
    alpha = tl.load(ALPHA + head) if RULE == "powers" else 2.0
    to_key = tl.zeros([KEYS, WIDTH], tl.float32)
    to_value = tl.zeros([KEYS, WIDTH], tl.float32)
    for start in range(query_start, query_end, QUERIES):
        rows = (start + tl.arange(0, QUERIES)).to(tl.int64)[:, None]
        live = (rows < query_end) & inside
        query = tl.load(QUERY + rows * query_stride + place, mask=live, other=0.0)
        at = TO_MIXED + rows * (N_HEADS * HEAD_WIDTH) + place
        to_mixed = tl.load(at, mask=live, other=0.0)
        used, to_affinity = block_gradient(
            query, key, value, to_mixed, start, query_start, query_end, key_start, key_number,
            key_live, alpha, ORIGIN, BUCKETS, BIAS, SEED, ROW_NUMBERS, CHOSEN, ROW_MEAN,
            n_rows_apart, head, scale, dropout, N_HEADS, KEYS, QUERIES, FARTHEST,
            RULE, CHOOSES, PRECISE, WITH_BIAS, WITH_DROPOUT)  # fmt: skip
        to_value = product(used.to(to_mixed.dtype), to_mixed, to_value, PRECISE)
        to_key = product(to_affinity.to(query.dtype), query, to_key, PRECISE)
    to_key = (to_key * scale).to(key.dtype)
    tl.store(TO_KEY + key_far * to_key_stride + place, to_key, mask=key_live & inside)
    to_value = to_value.to(value.dtype)
    tl.store(TO_VALUE + key_far * to_value_stride + place, to_value, mask=key_live & inside)


@triton.jit
def block_gradient(
    query, key, value, to_mixed, start, query_start, query_end, key_start, key_number, key_live,
    alpha, ORIGIN, BUCKETS, BIAS, SEED, ROW_NUMBERS, CHOSEN, ROW_MEAN,
    n_rows_apart, head, scale, dropout, N_HEADS: tl.constexpr, KEYS: tl.constexpr,
    QUERIES: tl.constexpr, FARTHEST: tl.constexpr, RULE: tl.constexpr, CHOOSES: tl.constexpr,
    PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """The weights as used and ∂affinity, (key, query): so they are a product's left side without
    being turned.
    """
    query_place = start + tl.arange(0, QUERIES)[None, :]  # (1, query), as all that goes by query
    query_live = query_place < query_end
    row = head * n_rows_apart + query_place
    nothing = tl.zeros([KEYS, QUERIES], tl.float32)
    affinity = product(key, tl.trans(query), nothing, PRECISE) * scale
    pull = product(value, tl.trans(to_mixed), nothing, PRECISE)
    if WITH_BIAS:
        bias, _ = distance_bias(
            ORIGIN, BUCKETS, BIAS, key_start + query_place - query_start, key_start + key_number,
            query_live, key_live, head, N_HEADS, FARTHEST)  # fmt: skip
        affinity += bias
    weights = known_weights(
        affinity, ROW_NUMBERS, CHOSEN, row, key_number, query_live, key_live, alpha,
        N_HEADS * n_rows_apart, FARTHEST, RULE, CHOOSES, PRECISE)  # fmt: skip
    used = weights
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, query_place, key_number, head, dropout, N_HEADS)
        more = 1.0 / (1.0 - dropout)
        used, pull = tl.where(kept, weights * more, 0.0), tl.where(kept, pull * more, 0.0)
    mean = tl.load(ROW_MEAN + row, mask=query_live, other=0.0)
    return used, slopes(weights, alpha, RULE) * (pull - mean)
