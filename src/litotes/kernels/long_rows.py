"""Affinities of rows that lie on the chip as pairs of halves (pairs.py), block by block."""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.forward_kernels import (
    after_dropout,
    as_words,
    distance_bias,
    is_removed,
    load_rows,
    load_turned,
    product,
    store_chosen,
    store_nothing,
    store_received,
    store_row_numbers,
    store_rows,
    tile_at,
)
from litotes.kernels.pairs import (
    N_PAIRS,
    compared,
    exact_reach,
    for_all,
    half_of,
    kept_reach,
    larger,
    minus,
    moved,
    only_kept,
    pair,
    plus,
    plus_if_positive,
    powers_excess,
    powers_reach,
    rounded,
    row_best,
    row_sums,
    squares_reach,
    times,
    without_late,
)
from litotes.kernels.rules import LOG2_E, beta_of, largest, quick_log2


@triton.jit
def part_affinities(start, walk, N_HEADS, HEAD_WIDTH, PART, WITH_BIAS):
    """Computes biased affinities, −∞ without a key. (query, PART) walk: as in `block_affinities`"""
    query, query_piece, query_live, KEY, distance, key_start, n_keys, key_stride, scale = walk
    number = tl.arange(0, PART)
    live, key_place = number < n_keys - start, key_start + start + number
    key_rows = KEY + key_place.to(tl.int64) * key_stride
    key = load_turned(key_rows, live, HEAD_WIDTH, query.shape[1])
    # a key that is not there is 0, and so is its product: what is added says that it is not there
    nothing = tl.where(live, 0.0, -float("inf"))[None, :]
    affinity = product(query, key, False) * scale + nothing
    if WITH_BIAS:
        bias, _ = distance_bias(distance, query_piece[:, None], key_place[None, :],
                                query_live[:, None], live[None, :], N_HEADS)  # fmt: skip
        affinity += bias
    return affinity


@triton.jit
def gather_pairs(
    walk, N_HEADS, HEAD_WIDTH, ROWS, PART, WITH_BIAS, CENTRED, PRODUCTS, TOGETHER
):  # fmt: skip
    """Each row's best affinity, and how far all keys are behind it, as pairs.

    CENTRED: rounded minus the best of the first keys: so the best of all are near 0, where half
    precision is finest.
    """
    about = tl.zeros([ROWS], tl.float32)
    if CENTRED:
        some = part_affinities(0, walk, N_HEADS, HEAD_WIDTH, PART, WITH_BIAS)
        about = tl.max(some, 1)
    pairs_0 = tl.zeros([ROWS, PART], tl.int32)
    pairs_1 = tl.zeros([ROWS, PART], tl.int32)
    pairs_2 = tl.zeros([ROWS, PART], tl.int32)
    pairs_3 = tl.zeros([ROWS, PART], tl.int32)
    # a bias is looked up for every pair: loaded ahead as well it would not fit the chip
    N_AHEAD: tl.constexpr = 1 if WITH_BIAS else 3
    for start in tl.range(
        0, 2 * N_PAIRS * PART, 2 * PART, num_stages=N_AHEAD, loop_unroll_factor=TOGETHER
    ):
        first = part_affinities(start, walk, N_HEADS, HEAD_WIDTH, PART, WITH_BIAS)
        second = part_affinities(start + PART, walk, N_HEADS, HEAD_WIDTH, PART, WITH_BIAS)
        pairs_0, pairs_1, pairs_2 = moved(pairs_1), moved(pairs_2), moved(pairs_3)
        if CENTRED:
            first, second = first - about[:, None], second - about[:, None]
        pairs_3 = pair(first, second)
    best = row_best(larger(larger(pairs_0, pairs_1), larger(pairs_2, pairs_3)), PRODUCTS)
    less = for_all(-best)
    behind = (plus(pairs_0, less), plus(pairs_1, less), plus(pairs_2, less), plus(pairs_3, less))
    return best + about, behind


# Rows of up to 512 keys in half precision: affinities lie on the chip as pairs (pairs.py).
#
# Every second block of keys shares its registers with the one before: four tensors of pairs hold a
# row. Each is computed while the next keys are on their way; then the row is weighed where it lies,
# and a second walk over the pairs mixes the values.
#
#     behind  = affinity − best of the row      exact where it matters: near 0
#     weights = rule(behind), not yet divided by their sum


@triton.jit
def store_kept(CHOSEN, row, behind, reach, query_live, PART, FARTHEST):
    """The kept keys as bits: `behind` is without late ones."""
    at = minus(reach)
    for part in tl.static_range(N_PAIRS):
        kept = compared(behind[part], at, "ge") >> 10  # of the bits of 1 the lowest
        for half in tl.static_range(2):
            words = as_words((kept >> (16 * half)) & 1)
            store_chosen(CHOSEN, row, words, query_live, FARTHEST, (2 * part + half) * PART // 32)


@triton.jit
def find_reach(
    behind, beta, KEPT, CHOSEN, row, query_live, n_keys, missing, ROWS, PART, FARTHEST, RULE,
    WITH_ROW_NUMBERS, PRODUCTS,
):  # fmt: skip
    """Finds how far behind the best a key of each row may be, and the pairs: of `top_k` without
    keys as near as the last one kept that come later. Stores which are kept, if row numbers are.
    """
    if RULE == "squares":
        reach = squares_reach(behind, missing, ROWS, PRODUCTS)
    elif RULE == "powers":
        reach = powers_reach(behind, beta, ROWS, PRODUCTS)
    else:
        n_kept = tl.load(KEPT + n_keys).to(tl.float32)
        reach, n_reached, n_nearer = kept_reach(behind, n_kept, ROWS, PRODUCTS)
        if largest(n_reached) > n_kept:
            behind = without_late(behind, reach, n_kept - n_nearer, ROWS, PART, PRODUCTS)
        if WITH_ROW_NUMBERS:
            store_kept(CHOSEN, row, behind, reach, query_live, PART, FARTHEST)
    return reach, behind


@triton.jit
def prepared(pairs, reach, RULE):
    """Does what can be done with both keys of each pair at once."""
    if RULE == "squares":
        nearest = rounded(reach)
        inside = plus_if_positive(pairs, for_all(nearest))
        # (v + δ)² without δ²: half precision does not show the reach exactly
        pairs = times(inside, plus(inside, for_all(2.0 * (reach - nearest))))
    elif RULE == "top_k":
        pairs = only_kept(pairs, minus(reach))
    return pairs


@triton.jit
def weigh_half(ready, half, reach, beta, RULE, TYPE):
    """The weights of one key of each pair, not yet divided by their sum. TYPE: of the values."""
    if RULE == "squares":
        weights = half_of(ready, half, TYPE)
    elif RULE == "powers":
        # v^β: v = max(1 + behind / reach, 0), where NaN stays
        inside = 1.0 + half_of(ready, half) * (1.0 / reach)[:, None]
        inside = tl.maximum(inside, 0.0, propagate_nan=tl.PropagateNan.ALL)
        # of nothing the logarithm is −∞, and its power 0 again
        weights = tl.exp2(beta * quick_log2(inside))
    else:
        weights = tl.exp2(half_of(ready, half) * LOG2_E)
    return weights


@triton.jit
def mix_pairs(
    behind, reach, beta, values, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, PART, RULE, AGAIN,
    WITH_DROPOUT, PRODUCTS, TOGETHER,
):  # fmt: skip
    """The values' sum by weights that are not yet divided, the weights' sum, and the pairs, if they
    are needed AGAIN: each is the first one in its turn.

    values: where they lie, as `attend_pairs` has found.
    """
    VALUE, SEED, query_place, key_start, n_keys, value_stride, head = values
    pairs_0, pairs_1, pairs_2, pairs_3 = behind
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in tl.range(
        0, 2 * N_PAIRS * PART, 2 * PART, num_stages=3, loop_unroll_factor=TOGETHER
    ):
        number = tl.arange(0, PART)
        value_rows = VALUE + (key_start + start + number).to(tl.int64) * value_stride
        value = load_rows(value_rows, number < n_keys - start, HEAD_WIDTH, WIDTH)
        value_second = load_rows(value_rows + PART * value_stride, number < n_keys - start - PART,
                                 HEAD_WIDTH, WIDTH)  # fmt: skip
        ready = prepared(pairs_0, reach, RULE)
        weights = weigh_half(ready, 0, reach, beta, RULE, value.dtype)
        total += row_sums(ready, PRODUCTS) if RULE == "squares" else tl.sum(weights, 1)
        weights = after_dropout(weights, SEED, query_place, start + number, head, dropout,
                                N_HEADS, WITH_DROPOUT, False)  # fmt: skip
        mixed = product(weights.to(value.dtype), value, False, mixed)
        weights = weigh_half(ready, 1, reach, beta, RULE, value.dtype)
        if RULE != "squares":
            total += tl.sum(weights, 1)
        weights = after_dropout(weights, SEED, query_place, start + PART + number, head, dropout,
                                N_HEADS, WITH_DROPOUT, False)  # fmt: skip
        mixed = product(weights.to(value.dtype), value_second, False, mixed)
        before = pairs_0
        pairs_0, pairs_1, pairs_2 = moved(pairs_1), moved(pairs_2), moved(pairs_3)
        if AGAIN:
            pairs_3 = moved(before)
    return mixed, total, (pairs_0, pairs_1, pairs_2, pairs_3)


@triton.jit
def mix_exactly(
    behind, reach, beta, values, dropout, missing, amiss, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, PART,
    RULE, IMPORTANCE, WITH_DROPOUT, PRODUCTS, TOGETHER,
):  # fmt: skip
    """As `mix_pairs`, and once more for `powers` where the weights' sum shows that the reach was
    not near enough; with the reach.
    """
    AGAIN: tl.constexpr = RULE == "powers" or IMPORTANCE != "none"
    mixed, total, behind = mix_pairs(
        behind, reach, beta, values, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, PART, RULE, AGAIN,
        WITH_DROPOUT, PRODUCTS, TOGETHER)  # fmt: skip
    if RULE == "powers":
        if beta * largest(tl.abs(powers_excess(total, reach, beta))) > amiss:
            reach = exact_reach(behind, reach, beta, missing, ROWS)
            mixed, total, behind = mix_pairs(
                behind, reach, beta, values, dropout, N_HEADS, HEAD_WIDTH, WIDTH, ROWS, PART, RULE,
                AGAIN, WITH_DROPOUT, PRODUCTS, TOGETHER)  # fmt: skip
    return reach, mixed, total, behind


@triton.jit
def store_all_received(
    to_received, behind, reach, beta, inverse, VALUE, key_start, n_keys, value_stride,
    query_live, HEAD_WIDTH, WIDTH, PART, RULE, IMPORTANCE,
):  # fmt: skip
    """Stores what each key received, as in `attend_tile`."""
    for part in tl.static_range(N_PAIRS):
        ready = prepared(behind[part], reach, RULE)
        for half in tl.static_range(2):
            weights = weigh_half(ready, half, reach, beta, RULE, tl.float32) * inverse[:, None]
            key_number = (2 * part + half) * PART + tl.arange(0, PART)
            key_live = key_number < n_keys
            value_rows = VALUE + (key_start + key_number).to(tl.int64) * value_stride
            value = load_rows(value_rows, key_live, HEAD_WIDTH, WIDTH)
            store_received(to_received + key_number, weights, query_live.to(tl.float32), value,
                           value_rows, key_live, HEAD_WIDTH, WIDTH, IMPORTANCE,
                           False)  # fmt: skip


@triton.jit(do_not_specialize=["n_slots_apart", "n_rows_apart", "n_slots"])
def attend_pairs(
    QUERY, KEY, VALUE, MIXED, QUERY_BOUNDS, KEY_BOUNDS, TILES, ALPHA, KEPT, ORIGIN, BUCKETS, BIAS,
    ALIVE, SEED, RECEIVED, HEAD_SIZE, ROW_NUMBERS, CHOSEN,
    query_stride, key_stride, value_stride, n_slots_apart, n_rows_apart, n_slots, scale, dropout,
    missing, amiss, N_HEADS: tl.constexpr, HEAD_WIDTH: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, PART: tl.constexpr, FARTHEST: tl.constexpr, RULE: tl.constexpr,
    WITH_BIAS: tl.constexpr, WITH_ALIVE: tl.constexpr, WITH_DROPOUT: tl.constexpr,
    IMPORTANCE: tl.constexpr, WITH_HEAD_SIZE: tl.constexpr, WITH_ROW_NUMBERS: tl.constexpr,
    CENTRED: tl.constexpr, PRODUCTS: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    """As `attend_tile`, whose arguments these are, and `gather_pairs`. PART: keys in half a pair.

    amiss: by how much a row's sum may be, before its reach is looked for again, for `powers`.
    PRODUCTS: sums of rows are products. TOGETHER: pairs of blocks in each turn of the walks: with
    more of them fewer registers are moved, and more keys lie on the chip.
    """
    head, tile = tl.program_id(1), tl.program_id(0)
    text, slot = tl.load(TILES + 2 * tile), tl.load(TILES + 2 * tile + 1)
    if text < 0:
        return
    queries, keys, key_start, n_keys = tile_at(
        QUERY_BOUNDS, KEY_BOUNDS, text, slot * ROWS, ROWS, 2 * N_PAIRS * PART)  # fmt: skip
    query_number, query_live, query_place = queries
    query_far, column = query_place.to(tl.int64), head * HEAD_WIDTH
    query_rows = QUERY + column + query_far * query_stride
    mixed_rows = MIXED + column + query_far * (N_HEADS * HEAD_WIDTH)
    to_received = RECEIVED + (slot * N_HEADS + head) * n_slots_apart + key_start
    to_size = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
    if WITH_ALIVE:
        if is_removed(ALIVE, text, head):
            store_nothing(mixed_rows, to_received + keys[0], to_size, query_live, keys[1],
                          HEAD_WIDTH, WIDTH, IMPORTANCE, WITH_HEAD_SIZE)  # fmt: skip
            return
    query = load_rows(query_rows, query_live, HEAD_WIDTH, WIDTH)
    distance = (ORIGIN, BUCKETS + FARTHEST, BIAS + head)
    walk = (query, key_start + query_number, query_live, KEY + column, distance, key_start, n_keys,
            key_stride, scale)  # fmt: skip
    best, behind = gather_pairs(walk, N_HEADS, HEAD_WIDTH, ROWS, PART, WITH_BIAS, CENTRED,
                                PRODUCTS, TOGETHER)  # fmt: skip
    beta = beta_of(ALPHA, head, RULE)
    row = head * n_rows_apart + query_place
    reach, behind = find_reach(
        behind, beta, KEPT, CHOSEN, row, query_live, n_keys, missing, ROWS, PART, FARTHEST, RULE,
        WITH_ROW_NUMBERS, PRODUCTS)  # fmt: skip
    values = (VALUE + column, SEED, query_place, key_start, n_keys, value_stride, head)
    reach, mixed, total, behind = mix_exactly(
        behind, reach, beta, values, dropout, missing, amiss, N_HEADS, HEAD_WIDTH, WIDTH, ROWS,
        PART, RULE, IMPORTANCE, WITH_DROPOUT, PRODUCTS, TOGETHER)  # fmt: skip
    inverse = 1.0 / total
    if WITH_ROW_NUMBERS:
        its_reach, n_rows = best if RULE == "top_k" else reach, N_HEADS * n_rows_apart
        store_row_numbers(ROW_NUMBERS + row, best, its_reach, inverse, query_live, n_rows)
    mixed *= (inverse / (1.0 - dropout) if WITH_DROPOUT else inverse)[:, None]
    size = store_rows(mixed_rows, mixed, query_live, HEAD_WIDTH, WIDTH)
    if WITH_HEAD_SIZE:
        tl.store(to_size, size)
    if IMPORTANCE != "none":
        store_all_received(
            to_received, behind, reach, beta, inverse, VALUE + column, key_start, n_keys,
            value_stride, query_live, HEAD_WIDTH, WIDTH, PART, RULE, IMPORTANCE)  # fmt: skip
