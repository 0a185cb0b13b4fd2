"""One program: some queries of one text in one attention head, and all the text's keys.

    affinity = query · key / √d + bias       (query, key), float32, in registers
    weights  = rule(affinity)                rules.py
    mixed    = weights · value

Affinities never leave the chip. What each key received is the sum of a column, which is already
there; so every tile writes its own sums and nobody adds in a race: the same bytes every time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.rules import (
    INTERPRETED,
    best_of_row,
    exp_behind,
    lines_row,
    powers_row,
    softmax_of_chosen,
    softmax_row,
    squares_row,
)


@triton.jit
def product(left, right, PRECISE, before=None):
    """What was there before, and left · right."""
    if PRECISE:
        after = tl.dot(left, right, before, input_precision="tf32x3")
    else:
        after = tl.dot(left, right, before)
    return after


@triton.jit
def affinities(
    query_rows, key_rows, query_live, key_live, head, scale, HEAD_WIDTH, STEP, PRECISE
):  # fmt: skip
    """The products query · key × scale, 0 where there is neither; the head's width in steps, so
    that long rows fit the chip.

    query_rows, key_rows: pointers to the rows' first numbers, (query,) and (key,)
    """
    affinity = tl.zeros([query_live.shape[0], key_live.shape[0]], tl.float32)
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        part = start + tl.arange(0, STEP)
        inside = part < HEAD_WIDTH
        place = head * HEAD_WIDTH + part
        query = tl.load(
            query_rows[:, None] + place[None, :],
            mask=query_live[:, None] & inside[None, :],
            other=0.0,
        )
        key = tl.load(
            key_rows[None, :] + place[:, None], mask=inside[:, None] & key_live[None, :], other=0.0
        )
        affinity = product(query, key, PRECISE, affinity)
    return affinity * scale


@triton.jit
def distance_bias(
    ORIGIN, BUCKETS, BIAS, query_place, key_place, query_live, key_live, head, N_HEADS,
    FARTHEST,
):  # fmt: skip
    """What MPNet adds by distance, and each pair's bucket.

    query_place, key_place: broadcast to the affinities' shape; so are the two that say what lives.
    """
    query_origin = tl.maximum(tl.load(ORIGIN + query_place, mask=query_live, other=0), 0)
    key_origin = tl.maximum(tl.load(ORIGIN + key_place, mask=key_live, other=0), 0)
    bucket = tl.load(BUCKETS + key_origin - query_origin + FARTHEST)
    return tl.load(BIAS + bucket * N_HEADS + head), bucket


@triton.jit
def biased(
    affinity, query_number, key_number, query_live, key_live, ORIGIN, BUCKETS, BIAS, key_start,
    head, N_HEADS, FARTHEST, WITH_BIAS,
):  # fmt: skip
    """With the bias, and −∞ where there is no key. (query, key)"""
    if WITH_BIAS:
        # a text's queries are its first pieces, wherever they lie
        bias, _ = distance_bias(
            ORIGIN, BUCKETS, BIAS, key_start + query_number[:, None],
            key_start + key_number[None, :], query_live[:, None], key_live[None, :], head,
            N_HEADS, FARTHEST)  # fmt: skip
        affinity += bias
    return tl.where(key_live[None, :], affinity, -float("inf"))


@triton.jit
def best_blocks(affinity, query_live, key_live, n_keys, KEPT, BLOCK):
    """Which keys lie in a block that their query's block keeps. (query, key)"""
    ROWS: tl.constexpr = affinity.shape[0]
    SPAN: tl.constexpr = affinity.shape[1]
    weights, _, _, _ = softmax_row(affinity)
    weights = tl.where(query_live[:, None], weights, 0.0)
    by_rows = tl.sum(tl.reshape(weights, [ROWS // BLOCK, BLOCK, SPAN]), 1)
    mass = tl.sum(tl.reshape(by_rows, [ROWS // BLOCK, SPAN // BLOCK, BLOCK]), 2)
    n_blocks = (n_keys + BLOCK - 1) // BLOCK
    is_live = tl.arange(0, SPAN // BLOCK) < n_blocks
    mass = tl.where(is_live[None, :], mass, -float("inf"))
    n_kept = tl.load(KEPT + n_blocks).to(tl.float32)
    kept = best_of_row(mass, n_blocks.to(tl.float32), n_kept).to(tl.int32)
    wide = tl.broadcast_to(kept[:, :, None], [ROWS // BLOCK, SPAN // BLOCK, BLOCK])
    by_keys = tl.reshape(wide, [ROWS // BLOCK, SPAN])
    tall = tl.broadcast_to(by_keys[:, None, :], [ROWS // BLOCK, BLOCK, SPAN])
    return (tl.reshape(tall, [ROWS, SPAN]) > 0) & key_live[None, :]


@triton.jit
def weigh(
    affinity, ALPHA, KEPT, query_live, key_live, n_keys, head, missing, RULE, BLOCK, PRECISE,
):  # fmt: skip
    """The weights by the rule, each row's three numbers, and which keys may have a weight."""
    chosen = key_live[None, :]
    if RULE == "squares":
        weights, best, reach, inverse = squares_row(affinity, missing)
    elif RULE == "lines":
        weights, best, reach, inverse = lines_row(affinity, missing)
    elif RULE == "powers":
        beta = 1.0 / (tl.load(ALPHA + head) - 1.0)
        weights, best, reach, inverse = powers_row(affinity, beta, missing, PRECISE)
    elif RULE == "top_k":
        n_kept = tl.load(KEPT + n_keys).to(tl.float32)
        chosen = best_of_row(affinity, n_keys.to(tl.float32), n_kept)
        weights, best, reach, inverse = softmax_of_chosen(affinity, chosen)
    elif RULE == "block_top_k":
        chosen = best_blocks(affinity, query_live, key_live, n_keys, KEPT, BLOCK)
        weights, best, reach, inverse = softmax_of_chosen(affinity, chosen)
    else:
        weights, best, reach, inverse = softmax_row(affinity)
    return weights, best, reach, inverse, chosen


@triton.jit
def store_row_numbers(to, best, reach, inverse, query_live, n_rows):
    tl.store(to, best, mask=query_live)
    tl.store(to + n_rows, reach, mask=query_live)
    tl.store(to + 2 * n_rows, inverse, mask=query_live)


@triton.jit
def store_chosen(CHOSEN, row, chosen, query_live, FARTHEST):
    """The chosen keys as bits, 32 a word."""
    by_word = tl.reshape(chosen.to(tl.int32), [chosen.shape[0], chosen.shape[1] // 32, 32])
    words = tl.sum(by_word << tl.arange(0, 32)[None, None, :], 2)
    to_row = CHOSEN + row.to(tl.int64) * (FARTHEST // 32)
    to = to_row[:, None] + tl.arange(0, chosen.shape[1] // 32)[None, :]
    tl.store(to, words, mask=query_live[:, None])


@triton.jit
def load_step(rows, live, start, head, HEAD_WIDTH, STEP):
    """A step of the head's width, 0 where there is nothing. (row, STEP)"""
    part = start + tl.arange(0, STEP)
    at = rows[:, None] + (head * HEAD_WIDTH + part)[None, :]
    return tl.load(at, mask=live[:, None] & (part < HEAD_WIDTH)[None, :], other=0.0)


@triton.jit
def store_importance(
    to_received, weights, query_live, first_value, value_rows, key_live, head, HEAD_WIDTH, STEP,
    ROWS, SPAN, IMPORTANCE, PRECISE,
):  # fmt: skip
    """What the tile's queries gave each key. Of the values the first step is there already."""
    squares = tl.zeros([SPAN], tl.float32)
    if IMPORTANCE == "value":
        squares = sum_of_squares(first_value)
        for start in tl.static_range(STEP, HEAD_WIDTH, STEP):
            value = load_step(value_rows, key_live, start, head, HEAD_WIDTH, STEP)
            squares += sum_of_squares(value)
    store_received(to_received, weights, query_live.to(tl.float32), squares, key_live,
                   IMPORTANCE, PRECISE)  # fmt: skip


@triton.jit
def mix_and_store(
    used, first_value, value_rows, mixed_rows, query_live, key_live, head, HEAD_WIDTH, STEP,
    ROWS, PRECISE,
):  # fmt: skip
    """The weights' products with the values, the head's width in steps, of which the first is there
    already. Returns the sum of what it stored, without signs; the compiler leaves that out where
    nobody asks.
    """
    size = tl.zeros([ROWS], tl.float32)
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        value = first_value
        if start > 0:
            value = load_step(value_rows, key_live, start, head, HEAD_WIDTH, STEP)
        mixed = product(used, value, PRECISE)
        rounded = mixed.to(value.dtype)
        part = start + tl.arange(0, STEP)
        to = mixed_rows[:, None] + (head * HEAD_WIDTH + part)[None, :]
        tl.store(to, rounded, mask=query_live[:, None] & (part < HEAD_WIDTH)[None, :])
        size += tl.sum(tl.abs(rounded.to(tl.float32)), 1)
    return tl.sum(tl.where(query_live, size, 0.0), 0)


@triton.jit
def store_nothing(
    mixed_rows, to_received, to_size, query_live, key_live, head, HEAD_WIDTH, STEP, ROWS, SPAN,
    IMPORTANCE, WITH_HEAD_SIZE,
):  # fmt: skip
    """What a removed attention head gives."""
    nothing = tl.zeros([ROWS, STEP], mixed_rows.dtype.element_ty)
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        part = start + tl.arange(0, STEP)
        to = mixed_rows[:, None] + (head * HEAD_WIDTH + part)[None, :]
        tl.store(to, nothing, mask=query_live[:, None] & (part < HEAD_WIDTH)[None, :])
    if IMPORTANCE != "none":
        tl.store(to_received, tl.zeros([SPAN], tl.float32), mask=key_live)
    if WITH_HEAD_SIZE:
        tl.store(to_size, 0.0)


@triton.jit(do_not_specialize=["n_slots_apart", "n_rows_apart", "n_slots"])
def attend_tile(
    QUERY, KEY, VALUE, MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES,
    ALPHA, KEPT, ORIGIN, BUCKETS, BIAS, ALIVE, SEED, RECEIVED, HEAD_SIZE, ROW_NUMBERS, CHOSEN,
    query_stride, key_stride, value_stride, n_slots_apart, n_rows_apart, n_slots,
    scale, dropout, missing, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr,
    ROWS: tl.constexpr, SPAN: tl.constexpr, FARTHEST: tl.constexpr, SHIFT: tl.constexpr,
    RULE: tl.constexpr, BLOCK: tl.constexpr, PRECISE: tl.constexpr,
    WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
    IMPORTANCE: tl.constexpr, WITH_HEAD_SIZE: tl.constexpr, WITH_ROW_NUMBERS: tl.constexpr,
):  # fmt: skip
    """Programs: (tile, attention_head). TILES: (tile, 2), a text and its tile's number.

    IMPORTANCE: "none", "received" or "value". RECEIVED: (slot, attention_head, piece), a slot for
    each tile of a text. HEAD_SIZE: (text, slot, attention_head). ROW_NUMBERS: (3, attention_head,
    piece). CHOSEN: bits of the chosen keys, (attention_head, piece, FARTHEST / 32).
    """
    head, tile = tl.program_id(1), tl.program_id(0)
    text, slot = tl.load(TILES + 2 * tile), tl.load(TILES + 2 * tile + 1)
    if text < 0:
        return
    query_start, key_start = tl.load(QUERY_BOUNDS + text), tl.load(KEY_BOUNDS + text)
    n_keys = tl.load(KEY_BOUNDS + text + 1) - key_start
    # a text's first piece is a block of queries by itself: SHIFT empty rows before it
    query_number = slot * ROWS + tl.arange(0, ROWS) - SHIFT
    key_number = tl.arange(0, SPAN)
    query_place, key_place = query_start + query_number, key_start + key_number
    query_live = (query_number >= 0) & (query_place < tl.load(QUERY_BOUNDS + text + 1))
    key_live = key_number < n_keys
    query_far, key_far = query_place.to(tl.int64), key_place.to(tl.int64)
    mixed_rows = MIXED + query_far * (N_HEADS * HEAD_WIDTH)
    key_rows, value_rows = KEY + key_far * key_stride, VALUE + key_far * value_stride
    to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_place
    to_size = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
    if WITH_ALIVE:
        if (tl.load(ALIVE + text) >> head) & 1 == 0:
            store_nothing(mixed_rows, to_received, to_size, query_live, key_live, head,
                          HEAD_WIDTH, STEP, ROWS, SPAN, IMPORTANCE, WITH_HEAD_SIZE)  # fmt: skip
            return
    affinity = affinities(QUERY + query_far * query_stride, key_rows, query_live, key_live, head,
                          scale, HEAD_WIDTH, STEP, PRECISE)  # fmt: skip
    affinity = biased(affinity, query_number, key_number, query_live, key_live, ORIGIN, BUCKETS,
                      BIAS, key_start, head, N_HEADS, FARTHEST, WITH_BIAS)  # fmt: skip
    weights, best, reach, inverse, chosen = weigh(
        affinity, ALPHA, KEPT, query_live, key_live, n_keys, head, missing,
        RULE, BLOCK, PRECISE)  # fmt: skip
    if WITH_ROW_NUMBERS:
        row, n_rows = head * n_rows_apart + query_place, N_HEADS * n_rows_apart
        store_row_numbers(ROW_NUMBERS + row, best, reach, inverse, query_live, n_rows)
        if RULE == "top_k" or RULE == "block_top_k":
            store_chosen(CHOSEN, row, chosen, query_live, FARTHEST)
    value = load_step(value_rows, key_live, 0, head, HEAD_WIDTH, STEP)
    if IMPORTANCE != "none":
        store_importance(to_received, weights, query_live, value, value_rows, key_live, head,
                         HEAD_WIDTH, STEP, ROWS, SPAN, IMPORTANCE, PRECISE)  # fmt: skip
    weights = after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS,
                            WITH_DROPOUT)  # fmt: skip
    size = mix_and_store(weights.to(VALUE.dtype.element_ty), value, value_rows, mixed_rows,
                         query_live, key_live, head, HEAD_WIDTH, STEP, ROWS, PRECISE)  # fmt: skip
    if WITH_HEAD_SIZE:
        tl.store(to_size, size)


# Softmax over texts too long for the chip: one program walks its text's keys block by block.
#
#     best, total and output follow as the blocks come
#     (Milakov and Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022, arXiv 2205.14135)
#
# What each key received needs the whole row's total first: a second walk, only where it is asked
# for.


@triton.jit
def load_rows(rows, live, head, HEAD_WIDTH, WIDTH):
    """An attention head's part of some rows, 0 where there are none. (row, WIDTH)

    rows: pointers to the rows' first numbers.
    """
    column = tl.arange(0, WIDTH)[None, :]
    at = rows[:, None] + head * HEAD_WIDTH + column
    return tl.load(at, mask=live[:, None] & (column < HEAD_WIDTH), other=0.0)


@triton.jit
def block_affinities(start, walk, N_HEADS, HEAD_WIDTH, PART, FARTHEST, PRECISE, WITH_BIAS):
    """Of the block of keys from `start` on, with the bias, and −∞ where there is no key, (query,
    PART); the keys' numbers, which of them there are, and their rows.

    walk: what `walk_keys` has found of its queries and of its text.
    """
    query, query_number, query_live, KEY, ORIGIN, BUCKETS, BIAS = walk[:7]
    key_start, n_keys, key_stride, head, scale = walk[7:]
    key_number = start + tl.arange(0, PART)
    key_live = key_number < n_keys
    key_far = (key_start + key_number).to(tl.int64)
    column = tl.arange(0, query.shape[1])[:, None]
    at = (KEY + key_far * key_stride)[None, :] + head * HEAD_WIDTH + column
    key = tl.load(at, mask=key_live[None, :] & (column < HEAD_WIDTH), other=0.0)
    affinity = biased(
        product(query, key, PRECISE) * scale, query_number, key_number, query_live, key_live,
        ORIGIN, BUCKETS, BIAS, key_start, head, N_HEADS, FARTHEST, WITH_BIAS)  # fmt: skip
    return affinity, key_number, key_live, key_far


@triton.jit
def gather_block(
    start, best, total, mixed, walk, VALUE, SEED, query_place, value_stride, dropout, N_HEADS,
    HEAD_WIDTH, PART, FARTHEST, PRECISE, WITH_BIAS, WITH_DROPOUT,
):  # fmt: skip
    """Best, total and output after one more block of keys."""
    affinity, key_number, key_live, key_far = block_affinities(
        start, walk, N_HEADS, HEAD_WIDTH, PART, FARTHEST, PRECISE, WITH_BIAS
    )
    head = walk[10]
    better = tl.maximum(best, tl.max(affinity, 1))
    weights = exp_behind(affinity, better[:, None])
    fading = exp_behind(best, better)
    total = total * fading + tl.sum(weights, 1)
    weights = after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS,
                            WITH_DROPOUT)  # fmt: skip
    value = load_rows(VALUE + key_far * value_stride, key_live, head, HEAD_WIDTH, mixed.shape[1])
    mixed = product(weights.to(value.dtype), value, PRECISE, mixed * fading[:, None])
    return better, total, mixed


@triton.jit
def store_received_in_block(
    start, to_received, best, times, walk, VALUE, n_used, value_stride, N_HEADS, HEAD_WIDTH, WIDTH,
    PART, FARTHEST, PRECISE, WITH_BIAS, WITH_ALIVE, IMPORTANCE,
):  # fmt: skip
    """What a block's keys received."""
    affinity, key_number, key_live, key_far = block_affinities(
        start, walk, N_HEADS, HEAD_WIDTH, PART, FARTHEST, PRECISE, WITH_BIAS
    )
    weights = exp_behind(affinity, best[:, None])  # before they are divided by their sum
    if WITH_ALIVE:
        weights = tl.where(n_used > 0, weights, 0.0)
    squares = tl.zeros([PART], tl.float32)
    if IMPORTANCE == "value":
        value_rows = VALUE + key_far * value_stride
        squares = sum_of_squares(load_rows(value_rows, key_live, walk[10], HEAD_WIDTH, WIDTH))
    store_received(to_received + key_number, weights, times, squares, key_live,
                   IMPORTANCE, PRECISE)  # fmt: skip


@triton.jit
def store_mixed(MIXED, mixed, query_place, query_live, head, N_HEADS, HEAD_WIDTH, WIDTH):
    """Returns the sum of what it stored, without signs."""
    column = tl.arange(0, WIDTH)[None, :]
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
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr, FARTHEST: tl.constexpr,
    PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr,
    WITH_DROPOUT: tl.constexpr, IMPORTANCE: tl.constexpr, WITH_HEAD_SIZE: tl.constexpr,
    WITH_ROW_NUMBERS: tl.constexpr,
):  # fmt: skip
    """As `attend_tile`, whose arguments these are. PART: keys at a time."""
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
                      HEAD_WIDTH, WIDTH)  # fmt: skip
    n_used = n_keys
    if WITH_ALIVE:
        # a removed head sees no keys: it gathers nothing and gives nothing
        n_used = tl.where((tl.load(ALIVE + text) >> head) & 1 == 1, n_keys, 0)
    walk = (query, query_number, query_live, KEY, ORIGIN, BUCKETS, BIAS, key_start, n_keys,
            key_stride, head, scale)  # fmt: skip
    best = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(0, n_used, PART):
        best, total, mixed = gather_block(
            start, best, total, mixed, walk, VALUE, SEED, query_place, value_stride, dropout,
            N_HEADS, HEAD_WIDTH, PART, FARTHEST, PRECISE, WITH_BIAS, WITH_DROPOUT)  # fmt: skip
    inverse = 1.0 / tl.where(n_used > 0, total, 1.0)
    size = store_mixed(MIXED, mixed * inverse[:, None], query_place, query_live, head,
                       N_HEADS, HEAD_WIDTH, WIDTH)  # fmt: skip
    if WITH_HEAD_SIZE:
        tl.store(HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head, size)
    if WITH_ROW_NUMBERS:
        to_numbers = ROW_NUMBERS + head * n_rows_apart + query_place
        n_rows = N_HEADS * n_rows_apart
        store_row_numbers(to_numbers, best, tl.zeros_like(best), inverse, query_live, n_rows)
    if IMPORTANCE != "none":
        to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_start
        times = tl.where(query_live, inverse, 0.0)
        for start in range(0, n_keys, PART):
            store_received_in_block(
                start, to_received, best, times, walk, VALUE, n_used, value_stride, N_HEADS,
                HEAD_WIDTH, WIDTH, PART, FARTHEST, PRECISE, WITH_BIAS, WITH_ALIVE,
                IMPORTANCE)  # fmt: skip


# What the queries of a tile gave each key: the sums of the weights' columns.


@triton.jit
def column_sums(weights, times, PRECISE):
    """Of the weights, each row `times` its own number. (row, key): rows are all the same.

    In half precision by a product with such rows: threads hold rows of weights, and to add columns
    they would have to pass all numbers on to each other.
    """
    if PRECISE:
        sums = tl.sum(weights * times[:, None], 0)[None, :]
    else:
        rows = tl.broadcast_to(
            times.to(tl.float16)[None, :], [16, times.shape[0]]
        )  # products have 16
        sums = tl.dot(rows, weights.to(tl.float16))
    return sums


@triton.jit
def sum_of_squares(value):
    """Of each key's value. (key,)"""
    value = value.to(tl.float32)
    return tl.sum(value * value, 1)


@triton.jit
def put(to, numbers, mask):
    """Stores numbers from where they lie. `tl.store` would first hand them from thread to thread,
    so that neighbours write neighbours, which takes longer than so small a store itself.
    """
    if INTERPRETED:
        tl.store(to, numbers, mask=mask)
    else:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $3, 0; @p st.global.f32 [$1], $2; mov.b32 $0, $3; }",
            "=r,l,f,r", [to.to(tl.int64), numbers, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def store_received(to_received, weights, times, squares, key_live, IMPORTANCE, PRECISE):
    """What the tile's queries gave each key; "value": times its value's length.

    to_received: a pointer for each key. times: what a row's weights have to be multiplied by, 0 for
    rows of nobody. (query,) squares: of the values' lengths. (key,)
    """
    sums = column_sums(weights, times, PRECISE)
    if IMPORTANCE == "value":
        sums *= tl.sqrt(squares)[None, :]
    is_first = (tl.arange(0, sums.shape[0]) == 0)[:, None]
    to = tl.broadcast_to(to_received[None, :], sums.shape)
    mask = is_first & key_live[None, :]
    if PRECISE:
        tl.store(to, sums, mask=mask)
    else:
        put(to, sums, mask)


# Which weights dropout leaves: drawn again wherever they are needed, never stored.
#
# With Philox (Salmon et al. 2011), which GPUs' generators mostly are, dropping a weight takes sixty
# instructions, three times as many as all else that is done to it. Here seed, row and key are
# scrambled one after the other by the last steps of MurmurHash3 (Appleby 2011): fifteen
# instructions, and over a hundred million draws nothing that chance would not do.

GOLDEN = tl.constexpr(0x9E3779B9)
"""2³² by the golden ratio: its multiples lie far apart."""
FIRST_FACTOR = tl.constexpr(0x85EBCA6B)
SECOND_FACTOR = tl.constexpr(0xC2B2AE35)
"""MurmurHash3's: nearly every bit turns half of those that come out."""
ALL = tl.constexpr(4294967296.0)
"""How many numbers of 32 bits there are."""


@triton.jit
def times(numbers, factor):
    """What overflows is lost, as it should be."""
    return tl.mul(numbers, factor, sanitize_overflow=False)


@triton.jit
def scrambled(numbers):
    """Other numbers of 32 bits, one for each, that show nothing of those they came from."""
    numbers = times(numbers ^ (numbers >> 16), FIRST_FACTOR)
    numbers = times(numbers ^ (numbers >> 13), SECOND_FACTOR)
    return numbers ^ (numbers >> 16)


@triton.jit
def keeps_weight(SEED, query_place, key_number, head, dropout, N_HEADS):
    """Which weights dropout leaves: the same for the same seed, place in the batch and head.

    query_place, key_number: broadcast to the weights' shape.
    """
    seed = tl.load(SEED)
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    place = (query_place * N_HEADS + head).to(tl.uint32)
    row = scrambled(scrambled(times(place, GOLDEN) ^ low) ^ high)
    number = scrambled(row ^ times(key_number.to(tl.uint32), GOLDEN))
    return number >= tl.cast(dropout * ALL, tl.uint32)


@triton.jit
def after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS, WITH_DROPOUT):
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS)
        weights = tl.where(kept, weights * (1.0 / (1.0 - dropout)), 0.0)
    return weights
