"""The gradient of attention over packed texts: nothing is solved again, nothing added in a race.

With g = ∂mixed · valueᵀ, s the slope of the weights (softmax: w; entmax: w^{2−α}) and each row's
mean q = Σ s g / Σ s (encoder/simplex.py has the equations):

    ∂affinity = s (g − q)       ∂query = ∂affinity · key / √d
    ∂value    = wᵀ · ∂mixed     ∂key   = ∂affinityᵀ · query / √d

One kernel has a query's whole row and writes ∂query and q; with q the other goes key by key.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.forward_kernels import affinities, distance_bias, keeps_weight, product
from litotes.kernels.rules import (
    LOG2_E,
    SMALLEST,
    are_chosen,
    beyond_line,
    even_place,
    first_number,
    load_part,
    row_lines,
    store_part,
    turn_words,
    weigh_again,
    weights_on_line,
)


@triton.jit
def slopes(weights, alpha, RULE):
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
def has_nothing(ALIVE, text, head, WITH_ALIVE):
    """Whether a tile is without a text, or its text without this attention head."""
    nothing = text < 0
    if WITH_ALIVE:
        alive = tl.load(ALIVE + text, mask=text >= 0, other=0)
        nothing = nothing | ((alive >> head) & 1 == 0)
    return nothing


@triton.jit
def known_weights(
    affinity, ROW_NUMBERS, CHOSEN, row, key_number, query_live, key_live, alpha, n_rows,
    FARTHEST, RULE, CHOOSES, PRECISE,
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
    to_affinity, key_rows, to_rows, query_live, key_live, head, scale, HEAD_WIDTH, STEP, ROWS,
    PRECISE,
):  # fmt: skip
    """∂affinity · key / √d, the head's width in steps."""
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        part = start + tl.arange(0, STEP)
        inside = (part < HEAD_WIDTH)[None, :]
        place = (head * HEAD_WIDTH + part)[None, :]
        key = tl.load(key_rows[:, None] + place, mask=key_live[:, None] & inside, other=0.0)
        to_query = product(to_affinity.to(key.dtype), key, PRECISE) * scale
        to = to_rows[:, None] + place
        tl.store(to, to_query.to(key.dtype), mask=query_live[:, None] & inside)


@triton.jit
def store_bias_gradient(to_bias, bucket, to_affinity, N_BUCKETS):
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
                          head, scale, HEAD_WIDTH, STEP, PRECISE)  # fmt: skip
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
                      head, 1.0, HEAD_WIDTH, STEP, PRECISE)  # fmt: skip
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
        to_value = product(used.to(to_mixed.dtype), to_mixed, PRECISE, to_value)
        to_key = product(to_affinity.to(query.dtype), query, PRECISE, to_key)
    to_key = (to_key * scale).to(key.dtype)
    tl.store(TO_KEY + key_far * to_key_stride + place, to_key, mask=key_live & inside)
    to_value = to_value.to(value.dtype)
    tl.store(TO_VALUE + key_far * to_value_stride + place, to_value, mask=key_live & inside)


@triton.jit
def block_gradient(
    query, key, value, to_mixed, start, query_start, query_end, key_start, key_number, key_live,
    alpha, ORIGIN, BUCKETS, BIAS, SEED, ROW_NUMBERS, CHOSEN, ROW_MEAN, n_rows_apart, head,
    scale, dropout, N_HEADS, KEYS, QUERIES, FARTHEST, RULE, CHOOSES, PRECISE, WITH_BIAS,
    WITH_DROPOUT,
):  # fmt: skip
    """The weights as used and ∂affinity, (key, query): so they are a product's left side without
    being turned.
    """
    query_place = start + tl.arange(0, QUERIES)[None, :]  # (1, query), as all that goes by query
    query_live = query_place < query_end
    row = head * n_rows_apart + query_place
    affinity = product(key, tl.trans(query), PRECISE) * scale
    pull = product(value, tl.trans(to_mixed), PRECISE)
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


# The gradient of attention over texts too long for the chip, block by block as in flash attention
# (Dao 2023, arXiv 2307.08691); half precision only.
#
# A weight w and its slope s follow from a product and two numbers of its row (rules.py). What pulls
# on a weight, g = ∂mixed · valueᵀ, is taken less c = ∂mixed · mixed, its mean by the weights. Of
# softmax that is all (the equations stand above); of entmax the mean by the slopes is q = c + m
# with m = Σ s (g − c) / Σ s, which nobody knows before the last key. So ∂query and ∂α are gathered
# in two parts, and one walk over the keys is enough:
#
#     ∂query = (Σ s (g − c) key − m Σ s key) / √d


@triton.jit
def block_of_keys(
    query, to_mixed, key, value, times, shift, centre, beta, of_row, SEED, query_place,
    first_key, n_pieces, head, dropout, N_HEADS, KEYS, RULE, CHOOSES, SOFT, WITH_DROPOUT,
):  # fmt: skip
    """Slopes, g − c, and of `powers` what ∂α is made of, all (query, key)."""
    key_number = first_key + tl.arange(0, KEYS)[None, :]
    products = tl.dot(query, tl.trans(key))
    pull = tl.dot(to_mixed, tl.trans(value))
    if CHOOSES:
        chosen = are_chosen((of_row + first_key // 32)[:, None], 1, key_number, KEYS)
        products = tl.where(chosen, products, -float("inf"))
    line = products * times[:, None] + shift[:, None]
    if not SOFT:
        # the row of a key that is not there is zeros, but its slope would be in the sums
        line = tl.where(key_number < n_pieces, line, -float("inf"))
    weights, slope, logarithm = weights_on_line(line, beta, RULE)
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, query_place[:, None], key_number, head, dropout, N_HEADS)
        pull = tl.where(kept, pull * (1.0 / (1.0 - dropout)), 0.0)
    beyond = slope
    if RULE == "powers":
        beyond = beyond_line(weights, slope, logarithm)
    return slope, pull - centre[:, None], beyond


@triton.jit
def walk_keys_back(
    query, to_mixed, times, shift, centre, beta, of_key, of_value, of_row, SEED, query_place,
    n_pieces, key_stride, value_stride, head, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, KEYS,
    RULE, CHOOSES, WITH_ALPHA, WITH_DROPOUT,
):  # fmt: skip
    """√d ∂query, m, and ∂α (α − 1)², some queries' walk over all keys."""
    SOFT: tl.constexpr = (RULE == "softmax") or CHOOSES
    to_query = tl.zeros([ROWS, WIDTH], tl.float32)
    by_slope = tl.zeros([ROWS, WIDTH], tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    pulled = tl.zeros([ROWS], tl.float32)
    by_beyond = tl.zeros([ROWS], tl.float32)
    to_alpha = tl.zeros([ROWS], tl.float32)
    for first_key in range(0, n_pieces, KEYS):
        key_number = first_key + tl.arange(0, KEYS)
        key_live = key_number < n_pieces
        key = load_part(of_key, key_number, key_live, key_stride, HEAD_WIDTH, WIDTH)
        value = load_part(of_value, key_number, key_live, value_stride, HEAD_WIDTH, WIDTH)
        slope, centred, beyond = block_of_keys(
            query, to_mixed, key, value, times, shift, centre, beta, of_row, SEED, query_place,
            first_key, n_pieces, head, dropout, N_HEADS, KEYS, RULE, CHOOSES, SOFT,
            WITH_DROPOUT)  # fmt: skip
        if not SOFT:
            total += tl.sum(slope, 1)
            pulled += tl.sum(slope * centred, 1)
            by_slope = tl.dot(slope.to(key.dtype), key, by_slope)
        if WITH_ALPHA:
            by_beyond += tl.sum(beyond, 1)
            to_alpha -= tl.sum(beyond * centred, 1)
        to_query = tl.dot((slope * centred).to(key.dtype), key, to_query)
    more = tl.zeros([ROWS], tl.float32)
    if not SOFT:
        more = pulled / total
        to_query -= more[:, None] * by_slope
    return to_query, more, to_alpha + more * by_beyond


@triton.jit(do_not_specialize=["n_rows_apart", "n_blocks", "n_shorter"])
def walk_for_queries(
    QUERY, KEY, VALUE, MIXED, TO_MIXED, KEY_BOUNDS, ALPHA, ALIVE, SEED, ROW_NUMBERS, CHOSEN,
    TO_QUERY, LINES, TURNED, TO_ALPHA,
    query_stride, key_stride, value_stride, to_query_stride, n_rows_apart, n_lines,
    n_blocks, n_shorter, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, EVEN: tl.constexpr, FARTHEST: tl.constexpr,
    RULE: tl.constexpr, CHOOSES: tl.constexpr, WITH_ALPHA: tl.constexpr,
    WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (block of ROWS queries of a text, attention_head); n_blocks of them a text, all but
    the real ones return at once, as do those of texts of up to n_shorter pieces.

    LINES: each row's a, b and q, for the other walk, zeros where there is no row: (attention_head,
    3, n_lines). Texts begin at even places (`even_place`), so that rows are loaded in pairs.
    TURNED: CHOSEN for the other walk. (attention_head, FARTHEST / 32, n_lines)
    """
    head, text = tl.program_id(1), tl.program_id(0) // n_blocks
    start = tl.load(KEY_BOUNDS + text)
    n_pieces = tl.load(KEY_BOUNDS + text + 1) - start
    first = (tl.program_id(0) % n_blocks) * ROWS
    if (first >= n_pieces) | (n_pieces <= n_shorter) | has_nothing(ALIVE, text, head, WITH_ALIVE):
        return
    number = first + tl.arange(0, ROWS)
    live, place = number < n_pieces, start + number
    row, at_text = head * n_rows_apart + place, even_place(start, text, EVEN)
    MIXED_STRIDE: tl.constexpr = N_HEADS * HEAD_WIDTH
    of_query = first_number(QUERY, start, query_stride, head, HEAD_WIDTH)
    query = load_part(of_query, number, live, query_stride, HEAD_WIDTH, WIDTH)
    of_mixed = first_number(MIXED, start, MIXED_STRIDE, head, HEAD_WIDTH)
    mixed = load_part(of_mixed, number, live, MIXED_STRIDE, HEAD_WIDTH, WIDTH)
    of_mixed = first_number(TO_MIXED, start, MIXED_STRIDE, head, HEAD_WIDTH)
    to_mixed = load_part(of_mixed, number, live, MIXED_STRIDE, HEAD_WIDTH, WIDTH)
    centre = tl.sum(mixed.to(tl.float32) * to_mixed.to(tl.float32), 1)
    alpha = tl.load(ALPHA + head) if RULE == "powers" else 2.0
    beta = 1.0 / (alpha - 1.0)
    times, shift = row_lines(ROW_NUMBERS, row, live, N_HEADS * n_rows_apart, scale, alpha, RULE)
    of_row = CHOSEN
    if CHOOSES:
        last = tl.minimum(place, start + n_pieces - 1)  # where there is no row, some other
        of_row = CHOSEN + (head * n_rows_apart + last).to(tl.int64) * (FARTHEST // 32)
        turned = TURNED + head.to(tl.int64) * (FARTHEST // 32) * n_lines + at_text
        turn_words(of_row, turned, number, n_lines, n_pieces, FARTHEST)
    of_key = first_number(KEY, start, key_stride, head, HEAD_WIDTH)
    of_value = first_number(VALUE, start, value_stride, head, HEAD_WIDTH)
    to_query, more, to_alpha = walk_keys_back(
        query, to_mixed, times, shift, centre, beta, of_key, of_value, of_row, SEED, place,
        n_pieces, key_stride, value_stride, head, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, KEYS,
        RULE, CHOOSES, WITH_ALPHA, WITH_DROPOUT)  # fmt: skip
    store_lines(LINES + head * 3 * n_lines + at_text + number, times, shift, centre + more, live,
                n_lines)  # fmt: skip
    if WITH_ALPHA:
        tl.store(TO_ALPHA + row, to_alpha * (beta * beta), mask=live)
    of_query = first_number(TO_QUERY, start, to_query_stride, head, HEAD_WIDTH)
    store_part(of_query, to_query * scale, number, live, to_query_stride, HEAD_WIDTH, WIDTH)


@triton.jit
def store_lines(to, times, shift, mean, live, n_lines):
    tl.store(to, times, mask=live)
    tl.store(to + n_lines, shift, mask=live)
    tl.store(to + 2 * n_lines, mean, mask=live)


@triton.jit
def block_of_queries(
    key, value, query, to_mixed, lines, words, query_number, key_number, start, SEED, n_lines,
    head, beta, scale, dropout, N_HEADS, KEYS, RULE, CHOOSES, WITH_DROPOUT,
):  # fmt: skip
    """The weights as used and ∂affinity, (key, query): so they are a product's left side without
    being turned.
    """
    products = tl.dot(key, tl.trans(query))
    pull = tl.dot(value, tl.trans(to_mixed))
    if CHOOSES:
        at = (words + query_number)[None, :]
        chosen = are_chosen(at, n_lines, key_number[:, None], KEYS)
        products = tl.where(chosen, products, -float("inf"))
    if (RULE == "softmax") or CHOOSES:
        line = products * (scale * LOG2_E)
    else:
        line = products * tl.load(lines + query_number)[None, :]
    line += tl.load(lines + n_lines + query_number)[None, :]
    weights, slope, _ = weights_on_line(line, beta, RULE)
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, (start + query_number)[None, :], key_number[:, None], head,
                            dropout, N_HEADS)  # fmt: skip
        more = 1.0 / (1.0 - dropout)
        weights, pull = tl.where(kept, weights * more, 0.0), tl.where(kept, pull * more, 0.0)
    mean = tl.load(lines + 2 * n_lines + query_number)
    return weights, slope * (pull - mean[None, :])


@triton.jit(do_not_specialize=["n_blocks", "n_shorter"])
def walk_for_keys(
    QUERY, KEY, VALUE, TO_MIXED, KEY_BOUNDS, ALPHA, ALIVE, SEED, LINES, TURNED, TO_KEY, TO_VALUE,
    query_stride, key_stride, value_stride, to_key_stride, to_value_stride, n_lines,
    n_blocks, n_shorter, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    KEYS: tl.constexpr, QUERIES: tl.constexpr, EVEN: tl.constexpr, FARTHEST: tl.constexpr,
    RULE: tl.constexpr, CHOOSES: tl.constexpr, WITH_ALIVE: tl.constexpr,
    WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (block of KEYS keys of a text, attention_head), as those of `walk_for_queries`.

    Nothing is masked between the products: where there is no query its rows are zeros on both
    sides, and sums for keys that are not there are not stored.
    """
    head, text = tl.program_id(1), tl.program_id(0) // n_blocks
    start = tl.load(KEY_BOUNDS + text)
    n_pieces = tl.load(KEY_BOUNDS + text + 1) - start
    first = (tl.program_id(0) % n_blocks) * KEYS
    if (first >= n_pieces) | (n_pieces <= n_shorter) | has_nothing(ALIVE, text, head, WITH_ALIVE):
        return
    number = first + tl.arange(0, KEYS)
    live, at_text = number < n_pieces, even_place(start, text, EVEN)
    lines = LINES + head * 3 * n_lines + at_text
    words = TURNED + (head.to(tl.int64) * (FARTHEST // 32) + first // 32) * n_lines + at_text
    MIXED_STRIDE: tl.constexpr = N_HEADS * HEAD_WIDTH
    of_key = first_number(KEY, start, key_stride, head, HEAD_WIDTH)
    key = load_part(of_key, number, live, key_stride, HEAD_WIDTH, WIDTH)
    of_value = first_number(VALUE, start, value_stride, head, HEAD_WIDTH)
    value = load_part(of_value, number, live, value_stride, HEAD_WIDTH, WIDTH)
    of_query = first_number(QUERY, start, query_stride, head, HEAD_WIDTH)
    of_mixed = first_number(TO_MIXED, start, MIXED_STRIDE, head, HEAD_WIDTH)
    alpha = tl.load(ALPHA + head) if RULE == "powers" else 2.0
    beta = 1.0 / (alpha - 1.0)
    to_key = tl.zeros([KEYS, WIDTH], tl.float32)
    to_value = tl.zeros([KEYS, WIDTH], tl.float32)
    for first_query in range(0, n_pieces, QUERIES):
        query_number = first_query + tl.arange(0, QUERIES)
        query_live = query_number < n_pieces
        query = load_part(of_query, query_number, query_live, query_stride, HEAD_WIDTH, WIDTH)
        to_mixed = load_part(of_mixed, query_number, query_live, MIXED_STRIDE, HEAD_WIDTH, WIDTH)
        used, to_affinity = block_of_queries(
            key, value, query, to_mixed, lines, words, query_number, number, start, SEED, n_lines,
            head, beta, scale, dropout, N_HEADS, KEYS, RULE, CHOOSES, WITH_DROPOUT)  # fmt: skip
        to_value = tl.dot(used.to(to_mixed.dtype), to_mixed, to_value)
        to_key = tl.dot(to_affinity.to(query.dtype), query, to_key)
    of_key = first_number(TO_KEY, start, to_key_stride, head, HEAD_WIDTH)
    store_part(of_key, to_key * scale, number, live, to_key_stride, HEAD_WIDTH, WIDTH)
    of_value = first_number(TO_VALUE, start, to_value_stride, head, HEAD_WIDTH)
    store_part(of_value, to_value, number, live, to_value_stride, HEAD_WIDTH, WIDTH)
