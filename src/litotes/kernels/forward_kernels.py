"""One program: some queries of one text in one attention head, and all the text's keys.

    affinity = query · key / √d + bias       (query, key), float32, in registers
    weights  = rule(affinity)                rules.py
    mixed    = weights · value

Affinities never leave the chip. What each key received is the sum of a column, which is already
there; so every tile writes its own sums and none adds in a race: the same bytes every time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.rules import (
    INTERPRETED,
    best_of_row,
    beta_of,
    entmax_row,
    exp_behind,
    softmax_row,
)


@triton.jit
def product(left, right, PRECISE, before=None):
    """Adds left · right to what was there before."""
    if PRECISE:
        after = tl.dot(left, right, before, input_precision="tf32x3")
    else:
        after = tl.dot(left, right, before)
    return after


@triton.jit
def text_at(BOUNDS, text):
    """Loads where a text begins, and how many pieces it has."""
    start = tl.load(BOUNDS + text)
    return start, tl.load(BOUNDS + text + 1) - start


@triton.jit
def tile_at(QUERY_BOUNDS, KEY_BOUNDS, text, first, ROWS, SPAN):
    """A tile's queries, from the text's `first` on, and the text's keys, of both the numbers, which
    of them there are, and their places; with where the keys begin, and how many they are.
    """
    query_start, n_queries = text_at(QUERY_BOUNDS, text)
    key_start, n_keys = text_at(KEY_BOUNDS, text)
    query_number, key_number = first + tl.arange(0, ROWS), tl.arange(0, SPAN)
    query_live = (query_number >= 0) & (query_number < n_queries)
    queries = query_number, query_live, query_start + query_number
    return queries, (key_number, key_number < n_keys, key_start + key_number), key_start, n_keys


@triton.jit
def is_removed(ALIVE, text, head):
    """Tells whether a text lacks this attention head."""
    return (tl.load(ALIVE + text) >> head) & 1 == 0


# An attention head's columns of some rows, `start` to `start` + WIDTH of them, 0 where there are
# none. rows: pointers to the first of these columns.


@triton.jit
def columns_of(rows, live, HEAD_WIDTH, WIDTH, start=0):
    """Locates columns of rows, and marks those that there are. (row, WIDTH) each"""
    part = start + tl.arange(0, WIDTH)
    return rows[:, None] + part[None, :], live[:, None] & (part < HEAD_WIDTH)[None, :]


@triton.jit
def load_rows(rows, live, HEAD_WIDTH, WIDTH, start=0):
    at, inside = columns_of(rows, live, HEAD_WIDTH, WIDTH, start)
    return tl.load(at, mask=inside, other=0.0)


@triton.jit
def load_turned(rows, live, HEAD_WIDTH, WIDTH, start=0):
    """(WIDTH, row)"""
    part = start + tl.arange(0, WIDTH)
    at = rows[None, :] + part[:, None]
    return tl.load(at, mask=(part < HEAD_WIDTH)[:, None] & live[None, :], other=0.0)


@triton.jit
def store_rows(rows, numbers, live, HEAD_WIDTH, WIDTH, start=0):
    """Returns the sum of what it stored, without signs; the compiler leaves that out where it
    is not used.
    """
    to, inside = columns_of(rows, live, HEAD_WIDTH, WIDTH, start)
    rounded = numbers.to(rows.dtype.element_ty)
    tl.store(to, rounded, mask=inside)
    size = tl.where(live[:, None], tl.abs(rounded.to(tl.float32)), 0.0)
    return tl.sum(tl.sum(size, 1), 0)


# From queries and keys to weights.


@triton.jit
def affinities(query_rows, key_rows, query_live, key_live, scale, HEAD_WIDTH, STEP, PRECISE):
    """The products query · key × scale, 0 where there is neither; the head's width in steps, so
    that long rows fit the chip.
    """
    affinity = tl.zeros([query_live.shape[0], key_live.shape[0]], tl.float32)
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        query = load_rows(query_rows, query_live, HEAD_WIDTH, STEP, start)
        key = load_turned(key_rows, key_live, HEAD_WIDTH, STEP, start)
        affinity = product(query, key, PRECISE, affinity)
    return affinity * scale


@triton.jit
def distance_bias(distance, query_place, key_place, query_live, key_live, N_HEADS):
    """Looks up MPNet's bias by distance, and each pair's bucket.

    distance: ORIGIN, BUCKETS of distance 0, BIAS of the attention head. query_place, key_place:
    broadcast to the affinities' shape; so are the two that say what lives. A text's queries are its
    first pieces, wherever they lie.
    """
    ORIGIN, BUCKETS, BIAS = distance
    query_origin = tl.maximum(tl.load(ORIGIN + query_place, mask=query_live, other=0), 0)
    key_origin = tl.maximum(tl.load(ORIGIN + key_place, mask=key_live, other=0), 0)
    bucket = tl.load(BUCKETS + (key_origin - query_origin))
    return tl.load(BIAS + bucket * N_HEADS), bucket


@triton.jit
def biased(
    affinity, distance, query_place, key_place, query_live, key_live, N_HEADS, WITH_BIAS
):  # fmt: skip
    """Adds the bias, and −∞ where there is no key. (query, key)"""
    if WITH_BIAS:
        bias, _ = distance_bias(distance, query_place[:, None], key_place[None, :],
                                query_live[:, None], key_live[None, :], N_HEADS)  # fmt: skip
        affinity += bias
    return tl.where(key_live[None, :], affinity, -float("inf"))


@triton.jit
def best_blocks(affinity, query_live, key_live, n_keys, KEPT, BLOCK):
    """Marks keys in a block that their query's block keeps. (query, key)"""
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
    if RULE == "softmax":
        weights, best, reach, inverse = softmax_row(affinity)
    elif RULE == "top_k" or RULE == "block_top_k":
        if RULE == "top_k":
            n_kept = tl.load(KEPT + n_keys).to(tl.float32)
            chosen = best_of_row(affinity, n_keys.to(tl.float32), n_kept)
        else:
            chosen = best_blocks(affinity, query_live, key_live, n_keys, KEPT, BLOCK)
        weights, best, reach, inverse = softmax_row(tl.where(chosen, affinity, -float("inf")))
    else:
        beta = beta_of(ALPHA, head, RULE)
        weights, best, reach, inverse = entmax_row(affinity, beta, missing, RULE, PRECISE)
    return weights, best, reach, inverse, chosen


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
    """Multiplies; what overflows is lost, as it should be."""
    return tl.mul(numbers, factor, sanitize_overflow=False)


@triton.jit
def scrambled(numbers):
    """Other numbers of 32 bits, one for each, that show nothing of those they came from."""
    numbers = times(numbers ^ (numbers >> 16), FIRST_FACTOR)
    numbers = times(numbers ^ (numbers >> 13), SECOND_FACTOR)
    return numbers ^ (numbers >> 16)


@triton.jit
def keeps_weight(SEED, query_place, key_number, head, dropout, N_HEADS):
    """Marks weights that dropout leaves: the same for the same seed, place in the batch and head.

    query_place, key_number: broadcast to the weights' shape.
    """
    seed = tl.load(SEED)
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    place = (query_place * N_HEADS + head).to(tl.uint32)
    row = scrambled(scrambled(times(place, GOLDEN) ^ low) ^ high)
    number = scrambled(row ^ times(key_number.to(tl.uint32), GOLDEN))
    return number >= tl.cast(dropout * ALL, tl.uint32)


@triton.jit
def after_dropout(
    numbers, SEED, query_place, key_number, head, dropout, N_HEADS, WITH_DROPOUT, SCALED=True
):  # fmt: skip
    """Applies dropout; unless SCALED, the numbers are not yet divided by the share it leaves."""
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS)
        if SCALED:
            numbers *= 1.0 / (1.0 - dropout)
        numbers = tl.where(kept, numbers, 0.0)
    return numbers


# What a tile gives: its output, each row's numbers for a backward pass, and what the queries gave
# each key, the sums of the weights' columns.


@triton.jit
def store_row_numbers(to, best, reach, inverse, query_live, n_rows):
    tl.store(to, best, mask=query_live)
    tl.store(to + n_rows, reach, mask=query_live)
    tl.store(to + 2 * n_rows, inverse, mask=query_live)


@triton.jit
def as_words(bits):
    """32 bits a word. (query, key) → (query, word)"""
    by_word = tl.reshape(bits, [bits.shape[0], bits.shape[1] // 32, 32])
    return tl.sum(by_word << tl.arange(0, 32)[None, None, :], 2)


@triton.jit
def store_chosen(CHOSEN, row, words, query_live, FARTHEST, FIRST=0):
    """Words of bits of the chosen keys, the row's FIRST and those after it."""
    to_row = CHOSEN + row.to(tl.int64) * (FARTHEST // 32) + FIRST
    to = to_row[:, None] + tl.arange(0, words.shape[1])[None, :]
    tl.store(to, words, mask=query_live[:, None])


@triton.jit
def column_sums(weights, times, PRECISE):
    """Sums weights by key, each row `times` its own number. (row, key): rows are all the same.

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
def sum_of_squares(value):
    """Sums the squares of each key's value. (key,)"""
    value = value.to(tl.float32)
    return tl.sum(value * value, 1)


@triton.jit
def store_received(
    to_received, weights, times, first_value, value_rows, key_live, HEAD_WIDTH, STEP, IMPORTANCE,
    PRECISE,
):  # fmt: skip
    """Stores what the tile's queries gave each key; "value": times its value's length.

    to_received: a pointer for each key. times: what a row's weights have to be multiplied by, 0 for
    rows without a query. (query,) first_value: the values' first step, which is there already.
    """
    sums = column_sums(weights, times, PRECISE)
    if IMPORTANCE == "value":
        squares = sum_of_squares(first_value)
        for start in tl.static_range(STEP, HEAD_WIDTH, STEP):
            value = load_rows(value_rows, key_live, HEAD_WIDTH, STEP, start)
            squares += sum_of_squares(value)
        sums *= tl.sqrt(squares)[None, :]
    is_first = (tl.arange(0, sums.shape[0]) == 0)[:, None]
    to = tl.broadcast_to(to_received[None, :], sums.shape)
    mask = is_first & key_live[None, :]
    if PRECISE:
        tl.store(to, sums, mask=mask)
    else:
        put(to, sums, mask)


@triton.jit
def mix_and_store(
    weights, value, value_rows, mixed_rows, query_live, key_live, HEAD_WIDTH, STEP, PRECISE
):  # fmt: skip
    """The weights' products with the values, of which the first step is there already. Returns the
    sum of what it stored, without signs.
    """
    size = 0.0
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        if start > 0:
            value = load_rows(value_rows, key_live, HEAD_WIDTH, STEP, start)
        mixed = product(weights, value, PRECISE)
        size += store_rows(mixed_rows, mixed, query_live, HEAD_WIDTH, STEP, start)
    return size


@triton.jit
def store_nothing(
    mixed_rows, to_received, to_size, query_live, key_live, HEAD_WIDTH, STEP, IMPORTANCE,
    WITH_HEAD_SIZE,
):  # fmt: skip
    """Stores the zeros that a removed attention head gives."""
    nothing = tl.zeros([query_live.shape[0], STEP], tl.float32)
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        store_rows(mixed_rows, nothing, query_live, HEAD_WIDTH, STEP, start)
    if IMPORTANCE != "none":
        tl.store(to_received, tl.zeros([key_live.shape[0]], tl.float32), mask=key_live)
    if WITH_HEAD_SIZE:
        tl.store(to_size, 0.0)


@triton.jit(do_not_specialize=["n_slots_apart", "n_rows_apart", "n_slots"])
def attend_tile(
    QUERY, KEY, VALUE, MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES,
    ALPHA, KEPT, ORIGIN, BUCKETS, BIAS, ALIVE, SEED, RECEIVED, HEAD_SIZE, ROW_NUMBERS, CHOSEN,
    query_stride, key_stride, value_stride, n_slots_apart, n_rows_apart, n_slots,
    scale, dropout, missing, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr,
    ROWS: tl.constexpr, SPAN: tl.constexpr, FARTHEST: tl.constexpr, SHIFT: tl.constexpr,
    RULE: tl.constexpr, CHOOSES: tl.constexpr, BLOCK: tl.constexpr, PRECISE: tl.constexpr,
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
    # a text's first piece is a block of queries by itself: SHIFT empty rows before it
    queries, keys, key_start, n_keys = tile_at(
        QUERY_BOUNDS, KEY_BOUNDS, text, slot * ROWS - SHIFT, ROWS, SPAN)  # fmt: skip
    query_number, query_live, query_place = queries
    key_number, key_live, key_place = keys
    query_far, key_far, column = query_place.to(tl.int64), key_place.to(tl.int64), head * HEAD_WIDTH
    query_rows = QUERY + column + query_far * query_stride
    key_rows = KEY + column + key_far * key_stride
    value_rows = VALUE + column + key_far * value_stride
    mixed_rows = MIXED + column + query_far * (N_HEADS * HEAD_WIDTH)
    to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_place
    to_size = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
    if WITH_ALIVE:
        if is_removed(ALIVE, text, head):
            store_nothing(mixed_rows, to_received, to_size, query_live, key_live, HEAD_WIDTH,
                          STEP, IMPORTANCE, WITH_HEAD_SIZE)  # fmt: skip
            return
    affinity = affinities(query_rows, key_rows, query_live, key_live, scale, HEAD_WIDTH, STEP,
                          PRECISE)  # fmt: skip
    distance = (ORIGIN, BUCKETS + FARTHEST, BIAS + head)
    affinity = biased(affinity, distance, key_start + query_number, key_place, query_live,
                      key_live, N_HEADS, WITH_BIAS)  # fmt: skip
    weights, best, reach, inverse, chosen = weigh(
        affinity, ALPHA, KEPT, query_live, key_live, n_keys, head, missing,
        RULE, BLOCK, PRECISE)  # fmt: skip
    if WITH_ROW_NUMBERS:
        row, n_rows = head * n_rows_apart + query_place, N_HEADS * n_rows_apart
        store_row_numbers(ROW_NUMBERS + row, best, reach, inverse, query_live, n_rows)
        if CHOOSES:
            store_chosen(CHOSEN, row, as_words(chosen.to(tl.int32)), query_live, FARTHEST)
    value = load_rows(value_rows, key_live, HEAD_WIDTH, STEP)
    if IMPORTANCE != "none":
        store_received(to_received, weights, query_live.to(tl.float32), value, value_rows,
                       key_live, HEAD_WIDTH, STEP, IMPORTANCE, PRECISE)  # fmt: skip
    weights = after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS,
                            WITH_DROPOUT)  # fmt: skip
    size = mix_and_store(weights.to(value.dtype), value, value_rows, mixed_rows, query_live,
                         key_live, HEAD_WIDTH, STEP, PRECISE)  # fmt: skip
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
def block_affinities(start, walk, N_HEADS, HEAD_WIDTH, PART, PRECISE, WITH_BIAS):
    """Computes affinities to the block of keys from `start` on, with the bias, and −∞ where there
    is no key, (query, PART); the keys' numbers, which of them there are, and their places.

    walk: what `walk_keys` has found of its queries and of its text.
    """
    query, query_piece, query_live, KEY, distance, key_start, n_keys, key_stride, scale = walk
    key_number = start + tl.arange(0, PART)
    key_live, key_place = key_number < n_keys, key_start + key_number
    key_far = key_place.to(tl.int64)
    key = load_turned(KEY + key_far * key_stride, key_live, HEAD_WIDTH, query.shape[1])
    affinity = biased(product(query, key, PRECISE) * scale, distance, query_piece, key_place,
                      query_live, key_live, N_HEADS, WITH_BIAS)  # fmt: skip
    return affinity, key_number, key_live, key_far


@triton.jit
def gather_block(
    start, best, total, mixed, walk, VALUE, SEED, query_place, value_stride, head, dropout,
    N_HEADS, HEAD_WIDTH, PART, PRECISE, WITH_BIAS, WITH_DROPOUT,
):  # fmt: skip
    """Best, total and output after one more block of keys."""
    affinity, key_number, key_live, key_far = block_affinities(
        start, walk, N_HEADS, HEAD_WIDTH, PART, PRECISE, WITH_BIAS
    )
    better = tl.maximum(best, tl.max(affinity, 1))
    weights = exp_behind(affinity, better[:, None])
    fading = exp_behind(best, better)
    total = total * fading + tl.sum(weights, 1)
    weights = after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS,
                            WITH_DROPOUT)  # fmt: skip
    value = load_rows(VALUE + key_far * value_stride, key_live, HEAD_WIDTH, mixed.shape[1])
    mixed = product(weights.to(value.dtype), value, PRECISE, mixed * fading[:, None])
    return better, total, mixed


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
    query_start, n_queries = text_at(QUERY_BOUNDS, text)
    key_start, n_keys = text_at(KEY_BOUNDS, text)
    query_number = slot * ROWS + tl.arange(0, ROWS)
    query_live, query_place = query_number < n_queries, query_start + query_number
    query_far, column = query_place.to(tl.int64), head * HEAD_WIDTH
    query_rows = QUERY + column + query_far * query_stride
    query = load_rows(query_rows, query_live, HEAD_WIDTH, WIDTH)
    n_used = n_keys
    if WITH_ALIVE:
        # a removed head sees no keys: it gathers nothing and gives nothing
        n_used = tl.where(is_removed(ALIVE, text, head), 0, n_keys)
    distance = (ORIGIN, BUCKETS + FARTHEST, BIAS + head)
    walk = (query, key_start + query_number, query_live, KEY + column, distance, key_start, n_keys,
            key_stride, scale)  # fmt: skip
    best = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(0, n_used, PART):
        best, total, mixed = gather_block(
            start, best, total, mixed, walk, VALUE + column, SEED, query_place, value_stride, head,
            dropout, N_HEADS, HEAD_WIDTH, PART, PRECISE, WITH_BIAS, WITH_DROPOUT)  # fmt: skip
    inverse = 1.0 / tl.where(n_used > 0, total, 1.0)
    mixed_rows = MIXED + column + query_far * (N_HEADS * HEAD_WIDTH)
    mixed *= inverse[:, None]
    size = store_rows(mixed_rows, mixed, query_live, HEAD_WIDTH, WIDTH)
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
            affinity, key_number, key_live, key_far = block_affinities(
                start, walk, N_HEADS, HEAD_WIDTH, PART, PRECISE, WITH_BIAS
            )
            weights = exp_behind(affinity, best[:, None])  # before they are divided by their sum
            if WITH_ALIVE:
                weights = tl.where(n_used > 0, weights, 0.0)
            value_rows = VALUE + column + key_far * value_stride
            value = load_rows(value_rows, key_live, HEAD_WIDTH, WIDTH)
            store_received(to_received + key_number, weights, times, value, value_rows, key_live,
                           HEAD_WIDTH, WIDTH, IMPORTANCE, PRECISE)  # fmt: skip
