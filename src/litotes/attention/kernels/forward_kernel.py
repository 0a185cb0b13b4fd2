"""One program: some queries of one text in one attention head, and all the text's keys.

    affinity = query · key / √d + bias       (query, key), float32, in registers
    weights  = rule(affinity)                row_weights.py
    mixed    = weights · value

Affinities never leave the chip. What each key received is the sum of a column, which is already
there; so every tile writes its own sums and nobody adds in a race: the same bytes every time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.attention.kernels.row_weights import (
    best_of_row,
    lines_row,
    powers_row,
    softmax_of_chosen,
    softmax_row,
    squares_row,
)


@triton.jit
def affinities(
    query_rows, key_rows, query_live, key_live, head, scale,
    HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, SPAN: tl.constexpr,
    PRECISE: tl.constexpr,
):  # fmt: skip
    """The products query · key × scale, 0 where there is neither; the head's width in steps, so
    that long rows fit the chip.

    query_rows, key_rows: pointers to the rows' first numbers, (query,) and (key,)
    """
    affinity = tl.zeros([ROWS, SPAN], tl.float32)
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
        if PRECISE:
            affinity = tl.dot(query, key, affinity, input_precision="tf32x3")
        else:
            affinity = tl.dot(query, key, affinity)
    return affinity * scale


@triton.jit
def distance_bias(ORIGIN, BUCKETS, BIAS, query_place, key_place, query_live, key_live, head,
                  N_HEADS: tl.constexpr, FARTHEST: tl.constexpr):  # fmt: skip
    """What MPNet adds by distance, and each pair's bucket.

    query_place, key_place: broadcast to the affinities' shape; so are the two that say what lives.
    """
    query_origin = tl.maximum(tl.load(ORIGIN + query_place, mask=query_live, other=0), 0)
    key_origin = tl.maximum(tl.load(ORIGIN + key_place, mask=key_live, other=0), 0)
    bucket = tl.load(BUCKETS + key_origin - query_origin + FARTHEST)
    return tl.load(BIAS + bucket * N_HEADS + head), bucket


@triton.jit
def best_blocks(affinity, query_live, key_live, n_keys, KEPT,
                ROWS: tl.constexpr, SPAN: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Which keys lie in a block that their query's block keeps. (query, key)"""
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
def keeps_weight(SEED, query_place, key_number, head, dropout, N_HEADS: tl.constexpr,
                 FARTHEST: tl.constexpr):  # fmt: skip
    """Which weights dropout leaves: the same for the same seed, place in the batch and head.

    query_place, key_number: broadcast to the weights' shape.
    """
    seed = tl.load(SEED)
    offset = (query_place * N_HEADS + head) * FARTHEST + key_number
    return tl.rand(seed, offset) >= dropout


@triton.jit(do_not_specialize=["n_slots_apart", "n_rows_apart", "n_slots"])
def attend_tile(
    QUERY, KEY, VALUE, MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES,
    ALPHA, KEPT, ORIGIN, BUCKETS, BIAS, ALIVE, SEED,
    RECEIVED, HEAD_SIZE, ROW_NUMBERS, CHOSEN,
    query_stride, key_stride, value_stride, n_slots_apart, n_rows_apart, n_slots,
    scale, dropout, missing,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr,
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
    head = tl.program_id(1)
    text = tl.load(TILES + 2 * tl.program_id(0))
    slot = tl.load(TILES + 2 * tl.program_id(0) + 1)
    if text < 0:
        return
    query_start = tl.load(QUERY_BOUNDS + text)
    n_queries = tl.load(QUERY_BOUNDS + text + 1) - query_start
    key_start = tl.load(KEY_BOUNDS + text)
    n_keys = tl.load(KEY_BOUNDS + text + 1) - key_start
    # a text's first piece is a block of queries by itself: SHIFT empty rows before it
    query_number = slot * ROWS + tl.arange(0, ROWS) - SHIFT
    key_number = tl.arange(0, SPAN)
    query_live = (query_number >= 0) & (query_number < n_queries)
    key_live = key_number < n_keys
    query_place = query_start + query_number
    key_place = key_start + key_number
    part = tl.arange(0, STEP)
    mixed_rows = MIXED + query_place.to(tl.int64) * (N_HEADS * HEAD_WIDTH)
    if WITH_ALIVE:
        if (tl.load(ALIVE + text) >> head) & 1 == 0:
            nothing = tl.zeros([ROWS, STEP], MIXED.dtype.element_ty)
            for start in tl.static_range(0, HEAD_WIDTH, STEP):
                place = head * HEAD_WIDTH + start + part
                inside = query_live[:, None] & (start + part < HEAD_WIDTH)[None, :]
                tl.store(mixed_rows[:, None] + place[None, :], nothing, mask=inside)
            if IMPORTANCE != "none":
                to = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_place
                tl.store(to, tl.zeros([SPAN], tl.float32), mask=key_live)
            if WITH_HEAD_SIZE:
                tl.store(HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head, 0.0)
            return
    query_rows = QUERY + query_place.to(tl.int64) * query_stride
    key_rows = KEY + key_place.to(tl.int64) * key_stride
    affinity = affinities(
        query_rows,
        key_rows,
        query_live,
        key_live,
        head,
        scale,
        HEAD_WIDTH,
        STEP,
        ROWS,
        SPAN,
        PRECISE,
    )
    if WITH_BIAS:
        # a text's queries are its first pieces, wherever they lie
        bias, _ = distance_bias(
            ORIGIN, BUCKETS, BIAS, (key_start + query_number)[:, None], key_place[None, :],
            query_live[:, None], key_live[None, :], head, N_HEADS, FARTHEST,
        )  # fmt: skip
        affinity += bias
    affinity = tl.where(key_live[None, :], affinity, -float("inf"))
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
        chosen = best_blocks(affinity, query_live, key_live, n_keys, KEPT, ROWS, SPAN, BLOCK)
        weights, best, reach, inverse = softmax_of_chosen(affinity, chosen)
    else:
        weights, best, reach, inverse = softmax_row(affinity)
    if WITH_ROW_NUMBERS:
        to = ROW_NUMBERS + head * n_rows_apart + query_place
        tl.store(to, best, mask=query_live)
        tl.store(to + N_HEADS * n_rows_apart, reach, mask=query_live)
        tl.store(to + 2 * N_HEADS * n_rows_apart, inverse, mask=query_live)
        if RULE == "top_k" or RULE == "block_top_k":
            bits = (
                tl.reshape(chosen.to(tl.int32), [ROWS, SPAN // 32, 32])
                << tl.arange(0, 32)[None, None, :]
            )
            words = tl.sum(bits, 2)
            word_place = (head * n_rows_apart + query_place).to(tl.int64) * (FARTHEST // 32)
            to_words = CHOSEN + word_place[:, None] + tl.arange(0, SPAN // 32)[None, :]
            tl.store(to_words, words, mask=query_live[:, None])
    if IMPORTANCE != "none":
        received = tl.sum(tl.where(query_live[:, None], weights, 0.0), 0)
        if IMPORTANCE == "value":
            squares = tl.zeros([SPAN], tl.float32)
            for start in tl.static_range(0, HEAD_WIDTH, STEP):
                inside = key_live[:, None] & (start + part < HEAD_WIDTH)[None, :]
                place = (
                    key_place.to(tl.int64)[:, None] * value_stride
                    + head * HEAD_WIDTH
                    + start
                    + part[None, :]
                )
                value = tl.load(VALUE + place, mask=inside, other=0.0).to(tl.float32)
                squares += tl.sum(value * value, 1)
            received *= tl.sqrt(squares)
        to = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_place
        tl.store(to, received, mask=key_live)
    if WITH_DROPOUT:
        kept = keeps_weight(
            SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS, FARTHEST
        )
        weights = tl.where(kept, weights / (1.0 - dropout), 0.0)
    used = weights.to(VALUE.dtype.element_ty)
    size = tl.zeros([ROWS], tl.float32)
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        inside = (start + part < HEAD_WIDTH)[None, :]
        place = (
            key_place.to(tl.int64)[:, None] * value_stride
            + head * HEAD_WIDTH
            + start
            + part[None, :]
        )
        value = tl.load(VALUE + place, mask=key_live[:, None] & inside, other=0.0)
        if PRECISE:
            mixed = tl.dot(used, value, input_precision="tf32x3")
        else:
            mixed = tl.dot(used, value)
        rounded = mixed.to(MIXED.dtype.element_ty)
        to = mixed_rows[:, None] + head * HEAD_WIDTH + start + part[None, :]
        tl.store(to, rounded, mask=query_live[:, None] & inside)
        if WITH_HEAD_SIZE:
            size += tl.sum(tl.abs(rounded.to(tl.float32)), 1)
    if WITH_HEAD_SIZE:
        to = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
        tl.store(to, tl.sum(tl.where(query_live, size, 0.0), 0))
