"""Selection on the device: who stays after a layer, and the rows of those who do.

The same as `Leaving` (encoder/operations.py), without a wait: boundaries before and after are
known from lengths and plan, and a tensor may have more rows than its texts need; those are rows of
no text, as texts beyond the real ones are empty. A text has at most rule.LONGEST pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from litotes.encoder.attention.weighting import LONGEST
from litotes.encoder.operations import FUSED

ROWS, COLUMNS = 16, 256
"""What a program that moves rows holds at a time."""

BLOCK = 128
"""Pieces whose importance a program adds up."""

WORKERS = 4
"""How many programs share the rows a text puts back."""


@dataclass(frozen=True)
class Fusing:
    """The contributions of leaving pieces to their text's fused piece.

    shares: how much, 0 for a piece that stays; joins: the fused piece's new row, −1. (old piece,)
    """

    shares: Tensor
    joins: Tensor


@dataclass(frozen=True)
class Staying:
    """Which pieces go on.

    places: their old rows; −1 for a fused piece and for rows of no text. (new piece,)
    destination: the new rows of all pieces; −1 for those that leave. (old piece,)
    before, after: the boundaries of the texts. (text + 1,)
    origin, importance: as `Choice` has them. (new piece,)
    """

    places: Tensor
    destination: Tensor
    before: Tensor
    after: Tensor
    origin: Tensor
    importance: Tensor
    fusing: Fusing | None = None


def add_received(
    importance: Tensor,
    received: Tensor,
    n_tiles: Tensor,
    bounds: Tensor,
    *,
    factor: Tensor | None = None,
) -> Tensor:
    """Computes (importance + what the pieces received in this layer) × `factor`; none leaves.

    received: as the attention kernel writes it, (slot, attention_head, piece); of each text only
    the first n_tiles slots count. (text,)
    """
    total = torch.empty_like(importance)
    n_texts = len(n_tiles)
    n_blocks = triton.cdiv(min(len(importance), LONGEST), BLOCK)
    add_received_kernel[(n_texts, n_blocks)](
        importance, received, _or(factor, importance), n_tiles, bounds, total,
        n_texts, len(importance), received.shape[2],
        N_HEADS=received.shape[1], SPAN=BLOCK, WITH_FACTOR=factor is not None,
    )  # fmt: skip
    return total


def select(
    importance: Tensor,
    received: Tensor,
    n_tiles: Tensor,
    origin: Tensor,
    before: Tensor,
    after: Tensor,
    *,
    n_after: int,
    factor: Tensor | None = None,
    kept: Tensor | None = None,
) -> Staying:
    """The most important pieces of each text stay, its first always, of equals the earlier one.

    n_after: rows of the new tensors.
    kept: how many stay, (text,), where those that leave fuse; `after` counts the fused pieces too.
    """
    n_texts, n_before = len(n_tiles), len(importance)
    places, destination = before.new_empty(n_after), before.new_empty(n_before)
    staying = Staying(
        places,
        destination,
        before,
        after,
        origin=origin.new_empty(n_after),
        importance=importance.new_empty(n_after),
        fusing=None
        if kept is None
        else Fusing(torch.empty_like(importance), torch.empty_like(destination)),
    )
    fusing = staying.fusing
    select_kernel[(n_texts,)](
        importance, received, _or(factor, importance), n_tiles, origin, before, after,
        _or(kept, before), places, destination, staying.origin, staying.importance,
        importance if fusing is None else fusing.shares, before if fusing is None else fusing.joins,
        n_texts, n_before, n_after, received.shape[2],
        N_HEADS=received.shape[1], WITH_FACTOR=factor is not None, FUSE=kept is not None,
    )  # fmt: skip
    return staying


def take(packed: Tensor, staying: Staying) -> Tensor:
    """The rows that go on, fused ones included; rows of no text are zeros. (new piece, width)"""
    return _Take.apply(staying, packed)[0]


def take_both(hidden: Tensor, mixed: Tensor, staying: Staying) -> tuple[Tensor, Tensor]:
    """The same of two tensors, in one launch if they are alike: a block that has lost attention
    heads for good gathers less than a piece holds, and under autocast half as many bytes a number.
    """
    if (hidden.shape[1], hidden.dtype) != (mixed.shape[1], mixed.dtype):
        return take(hidden, staying), take(mixed, staying)
    return _Take.apply(staying, hidden, mixed)


class _Take(torch.autograd.Function):
    """Backward, every old row looks up where it went."""

    @staticmethod
    def forward(ctx: Any, staying: Staying, *packed: Tensor) -> tuple[Tensor, ...]:
        ctx.staying = staying
        packed = tuple(tensor.contiguous() for tensor in packed)
        taken = _gather(packed, staying.places)
        if staying.fusing is not None:
            first, second = packed[0], packed[-1]
            fuse_kernel[(len(staying.before) - 1, _n_steps(first), len(packed))](
                first, second, taken[0], taken[-1], staying.places, staying.fusing.shares,
                staying.before, staying.after, first.shape[1], ROWS=ROWS, STEP=_step(first),
            )  # fmt: skip
        return taken

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradients = tuple(gradient.contiguous() for gradient in gradients)
        return None, *_gather(gradients, ctx.staying.destination, ctx.staying.fusing)


def _gather(
    packed: tuple[Tensor, ...], sources: Tensor, fusing: Fusing | None = None
) -> tuple[Tensor, ...]:
    """The rows at `sources` of one tensor or two; with `fusing`, also of those that have none."""
    first, second = packed[0], packed[-1]
    assert first.shape == second.shape
    n_rows, width = len(sources), first.shape[1]
    gathered = tuple(tensor.new_empty(n_rows, width) for tensor in packed)
    joins, shares = (sources, sources) if fusing is None else (fusing.joins, fusing.shares)
    gather_kernel[(triton.cdiv(n_rows, ROWS), _n_steps(first), len(packed))](
        first, second, gathered[0], gathered[-1], sources, joins, shares, n_rows, width,
        ROWS=ROWS, STEP=_step(first), WITH_SHARES=fusing is not None,
    )  # fmt: skip
    return gathered


def put_back(
    restored: Tensor,
    hidden: Tensor,
    origin: Tensor,
    before: Tensor,
    whole: Tensor,
    *,
    staying: Staying | None = None,
) -> Tensor:
    """Writes the rows of the pieces that leave, without `staying` of all, into `restored`, where
    they were in the beginning; fused ones were nowhere. Gives `restored`. (first piece, width)

    origin, before: of hidden's pieces. whole: the boundaries everything began with. (text + 1,)
    """
    destination = None if staying is None else staying.destination
    return _PutBack.apply(restored, hidden, _Places(destination, origin, before, whole))


@dataclass(frozen=True)
class _Places:
    """Which rows are put back, and where; `destination` None: all."""

    destination: Tensor | None
    origin: Tensor
    before: Tensor
    whole: Tensor

    def move(self, hidden: Tensor, restored: Tensor, *, to_hidden: bool) -> None:
        put_back_kernel[(len(self.whole) - 1, WORKERS, _n_steps(hidden))](
            hidden, restored, _or(self.destination, self.before), self.origin, self.before,
            self.whole, hidden.shape[1],
            ROWS=ROWS, STEP=_step(hidden), ALL=self.destination is None, TO_HIDDEN=to_hidden,
        )  # fmt: skip


class _PutBack(torch.autograd.Function):
    """No row of `restored` is written twice: its gradient passes through to what wrote the other
    rows, and nothing has to be kept but the places.
    """

    @staticmethod
    def forward(ctx: Any, restored: Tensor, hidden: Tensor, places: _Places) -> Tensor:
        ctx.mark_dirty(restored)
        ctx.places = places
        ctx.like = hidden.new_empty(0)
        ctx.n_rows = len(hidden)
        places.move(hidden.contiguous(), restored, to_hidden=False)
        return restored

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_hidden = ctx.like.new_zeros(ctx.n_rows, gradient.shape[1])
        ctx.places.move(to_hidden, gradient.contiguous(), to_hidden=True)
        return gradient, to_hidden, None


def keep_heads(
    head_importance: Tensor,
    head_size: Tensor,
    n_tiles: Tensor,
    alive: Tensor | None,
    n_heads: int,
) -> tuple[Tensor, Tensor]:
    """Adds the size of this layer's outputs to head_importance; the n_heads best of those alive go
    on, as bits.

    head_importance: (text, attention_head). head_size: (text, slot, attention_head). alive: (text,)
    """
    total, staying = torch.empty_like(head_importance), torch.empty_like(n_tiles)
    n_texts, n_slots, n_all_heads = head_size.shape
    keep_heads_kernel[(n_texts,)](
        head_importance, head_size, n_tiles, _or(alive, n_tiles), total, staying,
        n_heads, n_slots,
        N_HEADS=n_all_heads, WITH_ALIVE=alive is not None, num_warps=1,
    )  # fmt: skip
    return total, staying


def _or(tensor: Tensor | None, nothing: Tensor) -> Tensor:
    """A tensor to point at where there is none: the kernel never reads it."""
    return nothing if tensor is None else tensor


def _step(packed: Tensor) -> int:
    return min(COLUMNS, triton.next_power_of_2(packed.shape[1]))


def _n_steps(packed: Tensor) -> int:
    return triton.cdiv(packed.shape[1], _step(packed))


# Who stays: one program a text adds what its pieces received, and chooses.
#
#     total       importance + what a piece received in this layer
#     threshold   the n-th largest of a text's totals, found bit by bit
#     staying     above the threshold, or equal to it and early enough
#     place       how many stay before
#
# Totals are compared as integers in the order of the numbers, so nothing can fail to settle: NaN
# counts as larger than all numbers, as in torch's sort, and the first piece as larger still.

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
"""Rows of no text that a program fills at a time."""


@triton.jit
def ordered(values):
    """Integers in the order of the float32 numbers; −0 is 0, and every NaN is above ∞."""
    bits = values.to(tl.int32, bitcast=True)
    magnitude = bits & HIGHEST
    number = tl.where(bits < 0, -magnitude, magnitude)
    return tl.where(magnitude > INFINITY, NAN, number)


@triton.jit
def fill_rest(OUT, end, n_rows, value):
    """Fills the rows of no text, from `end` on, shared among all programs."""
    for first in range(end + tl.program_id(0) * FILL, n_rows, tl.num_programs(0) * FILL):
        row = first + tl.arange(0, FILL)
        tl.store(OUT + row, tl.zeros([FILL], OUT.dtype.element_ty) + value, mask=row < n_rows)


@triton.jit
def total_importance(
    IMPORTANCE, RECEIVED, FACTOR, place, live, n_slots, n_apart, N_HEADS, STEP, SPAN,
    WITH_FACTOR,
):  # fmt: skip
    """Adds up what each piece of a text has received in this layer and before. (piece,)"""
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
    """Marks the n_kept pieces with the largest keys; of equals the earlier one.

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
    SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart, N_HEADS, STEP, SPAN,
    WITH_FACTOR, FUSE,
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
    of_text = (
        IMPORTANCE, RECEIVED, FACTOR, ORIGIN, PLACES, DESTINATION, NEW_ORIGIN, NEW_IMPORTANCE,
        SHARES, JOINS, start, n_pieces, new_start, n_kept, n_slots, n_apart,
    )  # fmt: skip
    if n_pieces <= 32:
        select_in_text(*of_text, N_HEADS, 16, 32, WITH_FACTOR, FUSE)
    elif n_pieces <= 128:
        select_in_text(*of_text, N_HEADS, 32, 128, WITH_FACTOR, FUSE)
    elif n_pieces <= 512:
        select_in_text(*of_text, N_HEADS, 32, 512, WITH_FACTOR, FUSE)
    else:
        select_in_text(*of_text, N_HEADS, 4, 1024, WITH_FACTOR, FUSE)


@triton.jit(do_not_specialize=["n_kept", "n_slots"], do_not_specialize_on_alignment=["N_TILES"])
def keep_heads_kernel(
    IMPORTANCE, HEAD_SIZE, N_TILES, ALIVE, TOTAL, STAYING, n_kept, n_slots,
    N_HEADS: tl.constexpr, WITH_ALIVE: tl.constexpr,
):  # fmt: skip
    """Programs: (text,). The best attention heads of those alive; of equals the earlier one."""
    text = tl.program_id(0)
    head = tl.arange(0, 32)
    live = head < N_HEADS
    total = tl.load(IMPORTANCE + text * N_HEADS + head, mask=live, other=0.0)
    for slot in range(0, tl.load(N_TILES + text)):
        size = HEAD_SIZE + (text * n_slots + slot) * N_HEADS + head
        total += tl.load(size, mask=live, other=0.0)
    tl.store(TOTAL + text * N_HEADS + head, total, mask=live)
    if WITH_ALIVE:
        live &= (tl.load(ALIVE + text) >> head) & 1 == 1
    staying = best_by_rank(ordered(total), live, n_kept)
    tl.store(STAYING + text, tl.sum(staying.to(tl.int32) << head, 0))


# Moves rows of packed tensors: to where they go on, into a fused piece, back to where they
# began.
#
# Every row that is written is written by one program: none adds in a race.


@triton.jit
def of_two(FIRST, SECOND):
    """The tensor that a program moves."""
    if tl.program_id(2) == 0:
        tensor = FIRST
    else:
        tensor = SECOND
    return tensor


@triton.jit
def pointers(TENSOR, row, column, width):
    return TENSOR + row.to(tl.int64)[:, None] * width + column[None, :]


@triton.jit(do_not_specialize=["n_rows"])
def gather_kernel(
    FIRST, SECOND, FIRST_TO, SECOND_TO, SOURCES, JOINS, SHARES, n_rows, width,
    ROWS: tl.constexpr, STEP: tl.constexpr, WITH_SHARES: tl.constexpr,
):  # fmt: skip
    """Programs: (some rows, some columns, tensor). Every row is its source's, zeros where it has
    none.

    WITH_SHARES: what has no source takes its share of the row it joins.
    """
    FROM, TO = of_two(FIRST, SECOND), of_two(FIRST_TO, SECOND_TO)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * STEP + tl.arange(0, STEP)
    source = tl.load(SOURCES + row, mask=row < n_rows, other=-1)
    if WITH_SHARES:
        is_joining = (source < 0) & (row < n_rows)
        share = tl.load(SHARES + row, mask=is_joining, other=1.0)
        source = tl.where(source < 0, tl.load(JOINS + row, mask=is_joining, other=-1), source)
    inside = (row < n_rows)[:, None] & (column < width)[None, :]
    found = inside & (source >= 0)[:, None]
    value = tl.load(pointers(FROM, source, column, width), mask=found, other=0.0)
    if WITH_SHARES:
        value = (value.to(tl.float32) * share[:, None]).to(FROM.dtype.element_ty)
    tl.store(pointers(TO, row, column, width), value, mask=inside)


@triton.jit(do_not_specialize_on_alignment=["BEFORE", "AFTER"])
def fuse_kernel(
    FIRST, SECOND, FIRST_TO, SECOND_TO, PLACES, SHARES, BEFORE, AFTER, width,
    ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Programs: (text, some columns, tensor). A text's last row, if fused, is the sum of the
    leaving rows' shares.
    """
    FROM, TO = of_two(FIRST, SECOND), of_two(FIRST_TO, SECOND_TO)
    text = tl.program_id(0)
    column = tl.program_id(1) * STEP + tl.arange(0, STEP)
    start, end = tl.load(BEFORE + text), tl.load(BEFORE + text + 1)
    new_start, new_end = tl.load(AFTER + text), tl.load(AFTER + text + 1)
    last = tl.load(PLACES + tl.maximum(new_end - 1, 0))
    if (new_start < new_end) & (last < 0):
        total = tl.zeros([STEP], tl.float32)
        for begin in range(start, end, ROWS):
            row = begin + tl.arange(0, ROWS)
            share = tl.load(SHARES + row, mask=row < end, other=0.0)
            leaving = (share != 0.0)[:, None] & (column < width)[None, :]
            value = tl.load(pointers(FROM, row, column, width), mask=leaving, other=0.0)
            total += tl.sum(value.to(tl.float32) * share[:, None], 0)
        place = (new_end - 1).to(tl.int64) * width + column
        tl.store(TO + place, total.to(TO.dtype.element_ty), mask=column < width)


@triton.jit(do_not_specialize_on_alignment=["BEFORE", "WHOLE"])
def put_back_kernel(
    HIDDEN, RESTORED, DESTINATION, ORIGIN, BEFORE, WHOLE, width,
    ROWS: tl.constexpr, STEP: tl.constexpr, ALL: tl.constexpr, TO_HIDDEN: tl.constexpr,
):  # fmt: skip
    """Programs: (text, worker, some columns). Rows of pieces that leave, or of all, to where the
    pieces were in the beginning; TO_HIDDEN: from there. Fused pieces were nowhere.
    """
    text = tl.program_id(0)
    column = tl.program_id(2) * STEP + tl.arange(0, STEP)
    start, end = tl.load(BEFORE + text), tl.load(BEFORE + text + 1)
    whole_start = tl.load(WHOLE + text)
    for begin in range(start + tl.program_id(1) * ROWS, end, tl.num_programs(1) * ROWS):
        row = begin + tl.arange(0, ROWS)
        origin = tl.load(ORIGIN + row, mask=row < end, other=FUSED_PIECE)
        moves = origin != FUSED_PIECE
        if not ALL:
            moves &= tl.load(DESTINATION + row, mask=row < end, other=0) < 0
        inside = moves[:, None] & (column < width)[None, :]
        source = pointers(HIDDEN, row, column, width)
        to = pointers(RESTORED, whole_start + origin, column, width)
        if TO_HIDDEN:
            source, to = to, source
        value = tl.load(source, mask=inside, other=0.0)
        tl.store(to, value.to(to.dtype.element_ty), mask=inside)


@triton.jit
def pieces_left(COUNTS, length, live, stage, N_COUNTS, FUSE):
    """Counts the pieces left of each text in a stage, fused ones apart and included."""
    real = tl.load(COUNTS + stage * N_COUNTS + length, mask=live, other=0)
    total = real
    if FUSE:
        total = length
        for before in range(1, stage + 1):
            kept = tl.load(COUNTS + before * N_COUNTS + length, mask=live, other=0)
            # what leaves, a fused piece of the stage before included, fuses into one
            total = kept + (total > kept).to(tl.int32)
    return real, total


# one compiled kernel for all numbers of texts up to a power of 2
@triton.jit(do_not_specialize=["lengths_at", "n_texts"])
def lay_out_stages(
    BLOCK, COUNTS, STAGES, lengths_at, n_texts,
    TEXTS: tl.constexpr, N_COUNTS: tl.constexpr, N_SHAPES: tl.constexpr, N_NUMBERS: tl.constexpr,
    SHIFT: tl.constexpr, FUSE: tl.constexpr,
):  # fmt: skip
    """Programs: (stage,), and one more for first pieces.

    STAGES: of each program, the stage, whether first pieces alone ask, where bounds, n_tiles and
    kept begin in the block; then of each shape where its tiles begin, how many there is room for,
    the longest text it takes, the longest that a smaller shape takes, and its rows.
    """
    numbers = STAGES + tl.program_id(0) * N_NUMBERS
    stage = tl.load(numbers)
    firsts_ask = tl.load(numbers + 1)
    text = tl.arange(0, TEXTS)
    live = text < n_texts
    length = tl.load(BLOCK + lengths_at + text, mask=live, other=0)
    real, total = pieces_left(COUNTS, length, live, stage, N_COUNTS, FUSE)
    if firsts_ask == 0:
        bounds = BLOCK + tl.load(numbers + 2)
        tl.store(bounds + text + 1, tl.cumsum(total, 0), mask=live)
        tl.store(bounds, 0)
        tl.store(BLOCK + tl.load(numbers + 4) + text, real, mask=live)
    n_queries = tl.where(firsts_ask == 0, total, tl.minimum(total, 1))
    n_tiles = tl.zeros([TEXTS], tl.int32)
    for shape in tl.static_range(N_SHAPES):
        about = numbers + 5 + 5 * shape
        tiles = BLOCK + tl.load(about)
        n_room = tl.load(about + 1)
        longest = tl.load(about + 2)
        shorter = tl.load(about + 3)
        rows = tl.load(about + 4)
        mine = live & (total > shorter) & (total <= longest)
        n_own = tl.where(mine, (n_queries + SHIFT + rows - 1) // rows, 0)
        n_tiles += n_own
        first = tl.cumsum(n_own, 0) - n_own
        for slot in range(tl.max(n_own, 0)):
            to = tiles + 2 * (first + slot)
            tl.store(to, text, mask=slot < n_own)
            tl.store(to + 1, tl.zeros_like(text) + slot, mask=slot < n_own)
        n_used = tl.sum(n_own, 0)
        for start in range(0, n_room, TEXTS):
            tl.store(
                tiles + 2 * (start + text),
                -1,
                mask=(start + text >= n_used) & (start + text < n_room),
            )
    if firsts_ask == 0:
        tl.store(BLOCK + tl.load(numbers + 3) + text, n_tiles, mask=live)
