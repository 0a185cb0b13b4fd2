"""The gradient of attention over packed texts: nothing is solved again, nothing added in a race.

With g = ∂mixed · valueᵀ, s the slope of the weights (softmax: w; entmax: w^{2−α}) and each row's
mean q = Σ s g / Σ s (encoder/simplex.py has the equations):

    ∂affinity = s (g − q)       ∂query = ∂affinity · key / √d
    ∂value    = wᵀ · ∂mixed     ∂key   = ∂affinityᵀ · query / √d

A walk block by block, as in flash attention (Dao 2023, arXiv 2307.08691): a weight w and its slope
s follow from a product and two numbers of its row, a and b (rules.py). One kernel gathers ∂query
and writes a, b and q of each row; with these three the other gathers ∂key and ∂value.

Of softmax q = c = ∂mixed · mixed. Of entmax q = c + m with m = Σ s (g − c) / Σ s, which is not
known before the last key. Where a query's whole row lies on the chip (`query_gradient`) that is no
matter: short rows, float32, and a bias, whose gradient adds up by bucket what each pair pulls.
Elsewhere (`walk_for_queries`, half precision only) ∂query and ∂α are gathered in two parts:

    ∂query = (Σ s (g − c) key − m Σ s key) / √d
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.forward_kernels import (
    affinities,
    after_dropout,
    distance_bias,
    keeps_weight,
    load_rows,
    product,
    store_rows,
    text_at,
    tile_at,
)
from litotes.kernels.rules import (
    LOG2_E,
    are_chosen,
    beta_of,
    beyond_line,
    even_place,
    first_number,
    load_part,
    row_lines,
    store_part,
    turn_words,
    weights_on_line,
)


@triton.jit
def has_nothing(ALIVE, text, head, WITH_ALIVE):
    """Tells whether a tile has no text, or its text lacks this attention head."""
    nothing = text < 0
    if WITH_ALIVE:
        alive = tl.load(ALIVE + text, mask=text >= 0, other=0)
        nothing = nothing | ((alive >> head) & 1 == 0)
    return nothing


@triton.jit
def store_lines(to, times, shift, mean, live, n_lines):
    tl.store(to, times, mask=live)
    tl.store(to + n_lines, shift, mask=live)
    tl.store(to + 2 * n_lines, mean, mask=live)


@triton.jit
def store_bias_gradient(to_bias, bucket, to_affinity, N_BUCKETS):
    for number in range(N_BUCKETS):
        tl.store(to_bias + number, tl.sum(tl.where(bucket == number, to_affinity, 0.0)))


@triton.jit
def chosen_of_rows(
    CHOSEN, TURNED, row, at_row, query_live, key_live, head, n_lines, n_keys, FARTHEST, CHOOSES
):  # fmt: skip
    """Marks keys that whole rows may have weights for, (query, key). If they are chosen, turns
    their words for the other walk.
    """
    chosen = query_live[:, None] & key_live[None, :]
    if CHOOSES:
        of_row = CHOSEN + row.to(tl.int64) * (FARTHEST // 32)
        turned = TURNED + head.to(tl.int64) * (FARTHEST // 32) * n_lines
        turn_words(of_row, turned, at_row, query_live, n_lines, n_keys, FARTHEST)
        key_number = tl.arange(0, key_live.shape[0])[None, :]
        words = tl.load(of_row[:, None] + key_number // 32, mask=chosen, other=0)
        chosen = (words >> (key_number % 32)) & 1 != 0
    return chosen


@triton.jit
def store_query_gradient(
    to_affinity, key_rows, to_rows, query_live, key_live, scale, HEAD_WIDTH, STEP, PRECISE
):  # fmt: skip
    """∂affinity · key / √d, the head's width in steps."""
    for start in tl.static_range(0, HEAD_WIDTH, STEP):
        key = load_rows(key_rows, key_live, HEAD_WIDTH, STEP, start)
        to_query = product(to_affinity.to(key.dtype), key, PRECISE) * scale
        store_rows(to_rows, to_query, query_live, HEAD_WIDTH, STEP, start)


@triton.jit(do_not_specialize=["n_rows_apart"])
def query_gradient(
    QUERY, KEY, VALUE, TO_MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES, ALPHA, ORIGIN, BUCKETS, BIAS,
    ALIVE, SEED, ROW_NUMBERS, CHOSEN, TO_QUERY, LINES, TURNED, TO_ALPHA, TO_BIAS,
    query_stride, key_stride, value_stride, to_query_stride, n_rows_apart, n_lines, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, STEP: tl.constexpr, FARTHEST: tl.constexpr,
    TILE_ROWS: tl.constexpr, ROWS: tl.constexpr, SPAN: tl.constexpr, SHIFT: tl.constexpr,
    N_BUCKETS: tl.constexpr, EVEN: tl.constexpr, RULE: tl.constexpr, CHOOSES: tl.constexpr,
    PRECISE: tl.constexpr, WITH_TO_ALPHA: tl.constexpr, WITH_BIAS: tl.constexpr,
    WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (part of a tile, attention_head); a part is ROWS of the tile's TILE_ROWS queries.

    TO_ALPHA: (attention_head, piece). TO_BIAS: (program, attention_head, bucket).
    """
    head, program = tl.program_id(1), tl.program_id(0)
    tile, part = program // (TILE_ROWS // ROWS), program % (TILE_ROWS // ROWS)
    text, slot = tl.load(TILES + 2 * tile), tl.load(TILES + 2 * tile + 1)
    if has_nothing(ALIVE, text, head, WITH_ALIVE):
        return
    queries, keys, key_start, n_keys = tile_at(
        QUERY_BOUNDS, KEY_BOUNDS, text, slot * TILE_ROWS + part * ROWS - SHIFT, ROWS,
        SPAN)  # fmt: skip
    query_number, query_live, query_place = queries
    key_number, key_live, key_place = keys
    row = head * n_rows_apart + query_place
    query_far, key_far, column = query_place.to(tl.int64), key_place.to(tl.int64), head * HEAD_WIDTH
    query_rows = QUERY + column + query_far * query_stride
    key_rows = KEY + column + key_far * key_stride
    products = affinities(query_rows, key_rows, query_live, key_live, 1.0, HEAD_WIDTH, STEP,
                          PRECISE)  # fmt: skip
    if WITH_BIAS:
        bias, bucket = distance_bias(
            (ORIGIN, BUCKETS + FARTHEST, BIAS + head), (key_start + query_number)[:, None],
            key_place[None, :], query_live[:, None], key_live[None, :], N_HEADS)  # fmt: skip
        products += bias / scale
    at_row = even_place(tl.load(QUERY_BOUNDS + text), text, EVEN) + query_number
    chosen = chosen_of_rows(CHOSEN, TURNED, row, at_row, query_live, key_live, head, n_lines,
                            n_keys, FARTHEST, CHOOSES)  # fmt: skip
    beta, n_rows = beta_of(ALPHA, head, RULE), N_HEADS * n_rows_apart
    times, shift = row_lines(ROW_NUMBERS, row, query_live, n_rows, scale, beta, RULE)
    line = tl.where(chosen, products, -float("inf")) * times[:, None] + shift[:, None]
    weights, slope, logarithm = weights_on_line(line, beta, RULE, PRECISE)
    to_mixed_rows = TO_MIXED + column + query_far * (N_HEADS * HEAD_WIDTH)
    value_rows = VALUE + column + key_far * value_stride
    pull = affinities(to_mixed_rows, value_rows, query_live, key_live, 1.0, HEAD_WIDTH, STEP,
                      PRECISE)  # fmt: skip
    pull = after_dropout(pull, SEED, query_place, key_number, head, dropout, N_HEADS,
                         WITH_DROPOUT)  # fmt: skip
    mean = tl.sum(slope * pull, 1) / tl.where(query_live, tl.sum(slope, 1), 1.0)
    store_lines(LINES + head * 3 * n_lines + at_row, times, shift, mean, query_live, n_lines)
    centred = pull - mean[:, None]
    if WITH_TO_ALPHA:
        to_alpha = -tl.sum(beyond_line(weights, slope, logarithm) * centred, 1)
        tl.store(TO_ALPHA + row, to_alpha * (beta * beta), mask=query_live)
    to_affinity = slope * centred
    if WITH_BIAS:
        to_bias = TO_BIAS + (program * N_HEADS + head) * N_BUCKETS
        store_bias_gradient(to_bias, bucket, to_affinity, N_BUCKETS)
    store_query_gradient(to_affinity, key_rows, TO_QUERY + column + query_far * to_query_stride,
                         query_live, key_live, scale, HEAD_WIDTH, STEP, PRECISE)  # fmt: skip


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
    weights, slope, logarithm = weights_on_line(line, beta, RULE, False)
    pull = after_dropout(pull, SEED, query_place, first_key + tl.arange(0, KEYS), head, dropout,
                         N_HEADS, WITH_DROPOUT)  # fmt: skip
    beyond = slope
    if RULE == "powers":
        beyond = beyond_line(weights, slope, logarithm)
    return slope, pull - centre[:, None], beyond


@triton.jit
def walk_keys_back(
    query, to_mixed, times, shift, centre, beta, of_key, of_value, of_row, SEED, query_place,
    n_pieces, key_stride, value_stride, head, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, KEYS,
    RULE, CHOOSES, WITH_TO_ALPHA, WITH_DROPOUT,
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
        if WITH_TO_ALPHA:
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
    RULE: tl.constexpr, CHOOSES: tl.constexpr, WITH_TO_ALPHA: tl.constexpr,
    WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (block of ROWS queries of a text, attention_head); n_blocks of them a text, all but
    the real ones return at once, as do those of texts of up to n_shorter pieces.

    LINES: each row's a, b and q, for the other walk, zeros where there is no row: (attention_head,
    3, n_lines). Texts begin at even places (`even_place`), so that rows are loaded in pairs.
    TURNED: CHOSEN for the other walk. (attention_head, FARTHEST / 32, n_lines)
    """
    head, text = tl.program_id(1), tl.program_id(0) // n_blocks
    start, n_pieces = text_at(KEY_BOUNDS, text)
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
    beta = beta_of(ALPHA, head, RULE)
    times, shift = row_lines(ROW_NUMBERS, row, live, N_HEADS * n_rows_apart, scale, beta, RULE)
    of_row = CHOSEN
    if CHOOSES:
        last = tl.minimum(place, start + n_pieces - 1)  # where there is no row, some other
        of_row = CHOSEN + (head * n_rows_apart + last).to(tl.int64) * (FARTHEST // 32)
        turned = TURNED + head.to(tl.int64) * (FARTHEST // 32) * n_lines + at_text
        turn_words(of_row, turned, number, live, n_lines, n_pieces, FARTHEST)
    of_key = first_number(KEY, start, key_stride, head, HEAD_WIDTH)
    of_value = first_number(VALUE, start, value_stride, head, HEAD_WIDTH)
    to_query, more, to_alpha = walk_keys_back(
        query, to_mixed, times, shift, centre, beta, of_key, of_value, of_row, SEED, place,
        n_pieces, key_stride, value_stride, head, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, KEYS,
        RULE, CHOOSES, WITH_TO_ALPHA, WITH_DROPOUT)  # fmt: skip
    store_lines(LINES + head * 3 * n_lines + at_text + number, times, shift, centre + more, live,
                n_lines)  # fmt: skip
    if WITH_TO_ALPHA:
        tl.store(TO_ALPHA + row, to_alpha * (beta * beta), mask=live)
    of_query = first_number(TO_QUERY, start, to_query_stride, head, HEAD_WIDTH)
    store_part(of_query, to_query * scale, number, live, to_query_stride, HEAD_WIDTH, WIDTH)


@triton.jit
def block_of_queries(
    key, value, query, to_mixed, lines, words, distance, query_number, key_number, query_start,
    key_start, n_queries, n_keys, SEED, n_lines, head, beta, scale, dropout, N_HEADS, KEYS, RULE,
    CHOOSES, PRECISE, WITH_BIAS, WITH_DROPOUT,
):  # fmt: skip
    """The weights as used and ∂affinity, (key, query): so they are a product's left side without
    being turned.
    """
    products = product(key, tl.trans(query), PRECISE)
    pull = product(value, tl.trans(to_mixed), PRECISE)
    if WITH_BIAS:
        bias, _ = distance_bias(
            distance, key_start + query_number[None, :], key_start + key_number[:, None],
            query_number[None, :] < n_queries, key_number[:, None] < n_keys, N_HEADS)  # fmt: skip
        products += bias / scale
    if CHOOSES:
        at = (words + query_number)[None, :]
        chosen = are_chosen(at, n_lines, key_number[:, None], KEYS)
        products = tl.where(chosen, products, -float("inf"))
    if (RULE == "softmax") or CHOOSES:
        line = products * (scale * LOG2_E)
    else:
        line = products * tl.load(lines + query_number)[None, :]
    line += tl.load(lines + n_lines + query_number)[None, :]
    weights, slope, _ = weights_on_line(line, beta, RULE, PRECISE)
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, (query_start + query_number)[None, :], key_number[:, None], head,
                            dropout, N_HEADS)  # fmt: skip
        more = 1.0 / (1.0 - dropout)
        weights, pull = tl.where(kept, weights * more, 0.0), tl.where(kept, pull * more, 0.0)
    mean = tl.load(lines + 2 * n_lines + query_number)
    return weights, slope * (pull - mean[None, :])


@triton.jit(do_not_specialize=["n_blocks"])
def walk_for_keys(
    QUERY, KEY, VALUE, TO_MIXED, QUERY_BOUNDS, KEY_BOUNDS, ALPHA, ORIGIN, BUCKETS, BIAS, ALIVE,
    SEED, LINES, TURNED, TO_KEY, TO_VALUE,
    query_stride, key_stride, value_stride, to_key_stride, to_value_stride, n_lines,
    n_blocks, scale, dropout,
    N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    KEYS: tl.constexpr, QUERIES: tl.constexpr, EVEN: tl.constexpr, FARTHEST: tl.constexpr,
    RULE: tl.constexpr, CHOOSES: tl.constexpr, PRECISE: tl.constexpr, WITH_BIAS: tl.constexpr,
    WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Programs: (block of KEYS keys of a text, attention_head), as those of `walk_for_queries`.

    Nothing is masked between the products: where there is no query its rows are zeros on both
    sides, and sums for keys that are not there are not stored.
    """
    head, text = tl.program_id(1), tl.program_id(0) // n_blocks
    key_start, n_keys = text_at(KEY_BOUNDS, text)
    query_start, n_queries = text_at(QUERY_BOUNDS, text)
    first = (tl.program_id(0) % n_blocks) * KEYS
    if (first >= n_keys) | has_nothing(ALIVE, text, head, WITH_ALIVE):
        return
    number = first + tl.arange(0, KEYS)
    live, at_text = number < n_keys, even_place(query_start, text, EVEN)
    lines = LINES + head * 3 * n_lines + at_text
    words = TURNED + (head.to(tl.int64) * (FARTHEST // 32) + first // 32) * n_lines + at_text
    distance = (ORIGIN, BUCKETS + FARTHEST, BIAS + head)
    MIXED_STRIDE: tl.constexpr = N_HEADS * HEAD_WIDTH
    of_key = first_number(KEY, key_start, key_stride, head, HEAD_WIDTH)
    key = load_part(of_key, number, live, key_stride, HEAD_WIDTH, WIDTH)
    of_value = first_number(VALUE, key_start, value_stride, head, HEAD_WIDTH)
    value = load_part(of_value, number, live, value_stride, HEAD_WIDTH, WIDTH)
    of_query = first_number(QUERY, query_start, query_stride, head, HEAD_WIDTH)
    of_mixed = first_number(TO_MIXED, query_start, MIXED_STRIDE, head, HEAD_WIDTH)
    beta = beta_of(ALPHA, head, RULE)
    to_key = tl.zeros([KEYS, WIDTH], tl.float32)
    to_value = tl.zeros([KEYS, WIDTH], tl.float32)
    for first_query in range(0, n_queries, QUERIES):
        query_number = first_query + tl.arange(0, QUERIES)
        query_live = query_number < n_queries
        query = load_part(of_query, query_number, query_live, query_stride, HEAD_WIDTH, WIDTH)
        to_mixed = load_part(of_mixed, query_number, query_live, MIXED_STRIDE, HEAD_WIDTH, WIDTH)
        used, to_affinity = block_of_queries(
            key, value, query, to_mixed, lines, words, distance, query_number, number, query_start,
            key_start, n_queries, n_keys, SEED, n_lines, head, beta, scale, dropout, N_HEADS, KEYS,
            RULE, CHOOSES, PRECISE, WITH_BIAS, WITH_DROPOUT)  # fmt: skip
        to_value = product(used.to(to_mixed.dtype), to_mixed, PRECISE, to_value)
        to_key = product(to_affinity.to(query.dtype), query, PRECISE, to_key)
    of_key = first_number(TO_KEY, key_start, to_key_stride, head, HEAD_WIDTH)
    store_part(of_key, to_key * scale, number, live, to_key_stride, HEAD_WIDTH, WIDTH)
    of_value = first_number(TO_VALUE, key_start, to_value_stride, head, HEAD_WIDTH)
    store_part(of_value, to_value, number, live, to_value_stride, HEAD_WIDTH, WIDTH)
