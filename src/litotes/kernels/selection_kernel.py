"""Who stays: one program a text adds what its pieces received, and chooses.

    total       importance + what a piece received in this layer
    threshold   the n-th largest of a text's totals, found bit by bit
    staying     above the threshold, or equal to it and early enough
    place       how many stay before

Totals are compared as integers in the order of the numbers, so nothing can fail to settle: NaN
counts as larger than all numbers, as in torch's sort, and the first piece as larger still.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.encoder.attention.survivors import FUSED

NO_ROW = tl.constexpr(-1)
FUSED_PIECE = tl.constexpr(FUSED)
TINY = tl.constexpr(2.0**-126)
"""The smallest float32 of full precision."""

LOWEST = tl.constexpr(-(2**31))
HIGHEST = tl.constexpr(2**31 - 1)
NAN = tl.constexpr(0x7FC00000)
INFINITY = tl.constexpr(0x7F800000)

RANKED = tl.constexpr(128)
"""Pieces up to which all are compared with all."""

FILL = tl.constexpr(128)
"""Rows of nobody that a program fills at a time."""


@triton.jit
def ordered(values):
    """Integers in the order of the float32 numbers; −0 is 0, and every NaN is above ∞."""
    bits = values.to(tl.int32, bitcast=True)
    magnitude = bits & HIGHEST
    number = tl.where(bits < 0, -magnitude, magnitude)
    return tl.where(magnitude > INFINITY, NAN, number)


@triton.jit
def fill_rest(OUT, end, n_rows, value):
    """Rows of nobody, from `end` on, shared among all programs."""
    for first in range(end + tl.program_id(0) * FILL, n_rows, tl.num_programs(0) * FILL):
        row = first + tl.arange(0, FILL)
        tl.store(OUT + row, tl.zeros([FILL], OUT.dtype.element_ty) + value, mask=row < n_rows)


@triton.jit
def total_importance(
    IMPORTANCE, RECEIVED, FACTOR, place, live, n_slots, n_apart,
    N_HEADS: tl.constexpr, STEP: tl.constexpr, SPAN: tl.constexpr, WITH_FACTOR: tl.constexpr,
):  # fmt: skip
    """What each piece of a text has received in this layer and before. (piece,)"""
    received = tl.zeros([SPAN], tl.float32)
    n_rows = n_slots * N_HEADS  # a slot's attention heads follow those of the slot before
    for first in range(0, n_rows, STEP):
        row = first + tl.arange(0, STEP)
        place_in_row = row.to(tl.int64)[:, None] * n_apart + place[None, :]
        inside = (row < n_rows)[:, None] & live[None, :]
        received += tl.sum(tl.load(RECEIVED + place_in_row, mask=inside, other=0.0), 0)
    total = tl.load(IMPORTANCE + place, mask=live, other=0.0) + received
    if WITH_FACTOR:
        total *= tl.load(FACTOR + place, mask=live, other=0.0)
    return total


# one compiled kernel for all sizes, and for boundaries cut out of one long copy
@triton.jit(
    do_not_specialize=["n_texts", "n_rows", "n_apart"],
    do_not_specialize_on_alignment=["N_TILES", "BOUNDS"],
)
def add_received_kernel(
    IMPORTANCE, RECEIVED, FACTOR, N_TILES, BOUNDS, TOTAL, n_texts, n_rows, n_apart,
    N_HEADS: tl.constexpr, SPAN: tl.constexpr, WITH_FACTOR: tl.constexpr,
):  # fmt: skip
    """Programs: (text, block of SPAN pieces)."""
    text = tl.program_id(0)
    start = tl.load(BOUNDS + text)
    n_pieces = tl.load(BOUNDS + text + 1) - start
    if tl.program_id(1) == 0:
        fill_rest(TOTAL, tl.load(BOUNDS + n_texts), n_rows, 0.0)
    number = tl.program_id(1) * SPAN + tl.arange(0, SPAN)
    live = number < n_pieces
    if tl.program_id(1) * SPAN < n_pieces:
        total = total_importance(
            IMPORTANCE, RECEIVED, FACTOR, start + number, live, tl.load(N_TILES + text), n_apart,
            N_HEADS, 16, SPAN, WITH_FACTOR,
        )  # fmt: skip
        tl.store(TOTAL + start + number, total, mask=live)


@triton.jit
def best_pieces(key, live, n_pieces, n_kept):
    """Whether a piece is among the n_kept with the largest keys; of equals the earlier one is.

    Sets the bits of the threshold from the highest down, as long as enough pieces lie at or above
    it.
    """
    threshold, one = tl.full([], LOWEST, tl.int32), tl.full([], 1, tl.int32)
    n_above = n_pieces
    bit = 31
    while (bit >= 0) & (n_above > n_kept):
        trial = threshold ^ (one << bit)
        n_trial = tl.sum((key >= trial).to(tl.int32), 0)
        threshold = tl.where(n_trial >= n_kept, trial, threshold)
        n_above = tl.where(n_trial >= n_kept, n_trial, n_above)
        bit -= 1
    larger = live & (key > threshold)
    equal = live & (key == threshold)
    n_larger = tl.sum(larger.to(tl.int32), 0)
    return larger | (equal & (n_larger + tl.cumsum(equal.to(tl.int32), 0) <= n_kept))


@triton.jit
def best_by_rank(key, live, n_kept):
    """The same for few pieces, without a round for each bit: all are compared with all at once."""
    number = tl.arange(0, key.shape[0])
    earlier = (key[:, None] == key[None, :]) & (number[:, None] < number[None, :])
    is_better = live[:, None] & ((key[:, None] > key[None, :]) | earlier)
    n_better = tl.sum(is_better.to(tl.int32), 0)
    return live & (n_better < n_kept)


@triton.jit
def select_in_text(
    IMPORTANCE, RECEIVED, FACTOR, ORIGIN, PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE,
    SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart,
    N_HEADS: tl.constexpr, STEP: tl.constexpr, SPAN: tl.constexpr,
    WITH_FACTOR: tl.constexpr, FUSE: tl.constexpr,
):  # fmt: skip
    number = tl.arange(0, SPAN)
    place, live = start + number, number < n_pieces
    total = total_importance(
        IMPORTANCE, RECEIVED, FACTOR, place, live, n_slots, n_apart,
        N_HEADS, STEP, SPAN, WITH_FACTOR,
    )  # fmt: skip
    origin = tl.load(ORIGIN + place, mask=live, other=0)
    key = tl.where(live & (origin != FUSED_PIECE), ordered(total), LOWEST)
    key = tl.where(number == 0, HIGHEST, key)
    if SPAN <= RANKED:
        staying = best_by_rank(key, live, n_kept)
    else:
        staying = best_pieces(key, live, n_pieces, n_kept)
    row = new_start + tl.cumsum(staying.to(tl.int32), 0) - 1
    tl.store(DESTINATION + place, tl.where(staying, row, NO_ROW), mask=live)
    tl.store(PLACES + row, place, mask=staying)
    tl.store(NEW_ORIGIN + row, origin, mask=staying)
    tl.store(NEW_IMPORTANCE + row, total, mask=staying)
    if FUSE:
        leaving = live & ~staying
        weights = tl.where(total < TINY, TINY, total)
        whole = tl.sum(tl.where(leaving, weights, 0.0), 0)
        shares = weights / tl.where(n_kept < n_pieces, whole, 1.0)
        tl.store(SHARES + place, tl.where(leaving, shares, 0.0), mask=live)
        fused_row = new_start + n_kept
        tl.store(JOINS + place, tl.where(leaving, fused_row, NO_ROW), mask=live)
        if n_kept < n_pieces:
            tl.store(PLACES + fused_row, NO_ROW)
            tl.store(NEW_ORIGIN + fused_row, FUSED_PIECE)
            tl.store(NEW_IMPORTANCE + fused_row, tl.sum(tl.where(leaving, total, 0.0), 0))


@triton.jit(
    do_not_specialize=["n_texts", "n_before", "n_after", "n_apart"],
    do_not_specialize_on_alignment=["N_TILES", "BEFORE", "AFTER", "KEPT"],
)
def select_kernel(
    IMPORTANCE, RECEIVED, FACTOR, N_TILES, ORIGIN, BEFORE, AFTER, KEPT,
    PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE, SHARES, JOINS,
    n_texts, n_before, n_after, n_apart,
    N_HEADS: tl.constexpr, WITH_FACTOR: tl.constexpr, FUSE: tl.constexpr,
):  # fmt: skip
    """Programs: (text,). A short text runs a short program."""
    text = tl.program_id(0)
    start = tl.load(BEFORE + text)
    n_pieces = tl.load(BEFORE + text + 1) - start
    new_start = tl.load(AFTER + text)
    n_slots = tl.load(N_TILES + text)
    if FUSE:
        n_kept = tl.load(KEPT + text)
    else:
        n_kept = tl.load(AFTER + text + 1) - new_start
    n_kept = tl.minimum(n_kept, n_pieces)
    before_end, after_end = tl.load(BEFORE + n_texts), tl.load(AFTER + n_texts)
    fill_rest(PLACES, after_end, n_after, NO_ROW)
    fill_rest(NEW_ORIGIN, after_end, n_after, FUSED_PIECE)
    fill_rest(NEW_IMPORTANCE, after_end, n_after, 0.0)
    fill_rest(DESTINATION, before_end, n_before, NO_ROW)
    if FUSE:
        fill_rest(SHARES, before_end, n_before, 0.0)
        fill_rest(JOINS, before_end, n_before, NO_ROW)
    if n_pieces <= 32:
        select_in_text(
            IMPORTANCE, RECEIVED, FACTOR, ORIGIN, PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE,
            SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart,
            N_HEADS, 16, 32, WITH_FACTOR, FUSE,
        )  # fmt: skip
    elif n_pieces <= 128:
        select_in_text(
            IMPORTANCE, RECEIVED, FACTOR, ORIGIN, PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE,
            SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart,
            N_HEADS, 32, 128, WITH_FACTOR, FUSE,
        )  # fmt: skip
    elif n_pieces <= 512:
        select_in_text(
            IMPORTANCE, RECEIVED, FACTOR, ORIGIN, PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE,
            SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart,
            N_HEADS, 32, 512, WITH_FACTOR, FUSE,
        )  # fmt: skip
    else:
        select_in_text(
            IMPORTANCE, RECEIVED, FACTOR, ORIGIN, PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE,
            SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart,
            N_HEADS, 4, 1024, WITH_FACTOR, FUSE,
        )  # fmt: skip


@triton.jit(do_not_specialize=["n_kept", "n_slots"], do_not_specialize_on_alignment=["N_TILES"])
def keep_heads_kernel(
    IMPORTANCE, HEAD_SIZE, N_TILES, ALIVE, TOTAL, STAYING, n_kept, n_slots,
    N_HEADS: tl.constexpr, WITH_ALIVE: tl.constexpr,
):  # fmt: skip
    """Programs: (text,). The best attention heads of those alive; of equals the lower number."""
    text = tl.program_id(0)
    head = tl.arange(0, 32)
    live = head < N_HEADS
    total = tl.load(IMPORTANCE + text * N_HEADS + head, mask=live, other=0.0)
    for slot in range(0, tl.load(N_TILES + text)):
        size = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
        total += tl.load(size, mask=live, other=0.0)
    tl.store(TOTAL + text * N_HEADS + head, total, mask=live)
    key = tl.where(live, ordered(total), LOWEST)
    if WITH_ALIVE:
        key = tl.where((tl.load(ALIVE + text) >> head) & 1 == 1, key, LOWEST)
    candidate = key > LOWEST
    earlier = (key[:, None] == key[None, :]) & (head[:, None] < head[None, :])
    n_better = tl.sum(((key[:, None] > key[None, :]) | earlier).to(tl.int32), 0)
    bits = (candidate & (n_better < n_kept)).to(tl.int32) << head
    tl.store(STAYING + text, tl.sum(bits, 0))
