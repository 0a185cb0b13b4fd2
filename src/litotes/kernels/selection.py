"""Selection on the device: who stays after a layer, and the rows of those who do.

The same as Survivors (attention/survivors.py), without a wait: boundaries before and after are
known from lengths and plan, and a tensor may have more rows than its texts need; those are rows of
nobody, as texts beyond the real ones are empty. A text has at most rule.LONGEST pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from litotes.encoder.attention.rule import LONGEST
from litotes.kernels.forward import or_nothing
from litotes.kernels.rows_kernel import fuse_kernel, gather_kernel, put_back_kernel
from litotes.kernels.selection_kernel import (
    add_received_kernel,
    keep_heads_kernel,
    select_kernel,
)

ROWS, COLUMNS = 16, 256
"""What a program that moves rows holds at a time."""

BLOCK = 128
"""Pieces whose importance a program adds up."""

WORKERS = 4
"""How many programs share the rows a text puts back."""


@dataclass(frozen=True)
class Fusing:
    """What leaving pieces give to their text's fused piece.

    shares: how much, 0 for a piece that stays; joins: the fused piece's new row, −1. (old piece,)
    """

    shares: Tensor
    joins: Tensor


@dataclass(frozen=True)
class Staying:
    """Which pieces go on.

    places: their old rows; −1 for a fused piece and for rows of nobody. (new piece,)
    destination: the new rows of all pieces; −1 for those that leave. (old piece,)
    before, after: the boundaries of the texts. (text + 1,)
    origin, importance: as in Survivors. (new piece,)
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
    """Importance where nobody leaves: with what the pieces received in this layer, times `factor`.

    received: as the attention kernel writes it, (slot, attention_head, piece); of each text only
    the first n_tiles slots count. (text,)
    """
    total = torch.empty_like(importance)
    n_texts = len(n_tiles)
    n_blocks = triton.cdiv(min(len(importance), LONGEST), BLOCK)
    add_received_kernel[(n_texts, n_blocks)](
        importance, received, or_nothing(factor, importance), n_tiles, bounds, total,
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
        importance, received, or_nothing(factor, importance), n_tiles, origin, before, after,
        or_nothing(kept, before), places, destination, staying.origin, staying.importance,
        importance if fusing is None else fusing.shares, before if fusing is None else fusing.joins,
        n_texts, n_before, n_after, received.shape[2],
        N_HEADS=received.shape[1], WITH_FACTOR=factor is not None, FUSE=kept is not None,
    )  # fmt: skip
    return staying


def take(packed: Tensor, staying: Staying) -> Tensor:
    """The rows that go on, fused ones included; rows of nobody are zeros. (new piece, width)"""
    return _Take.apply(staying, packed)[0]


def take_both(hidden: Tensor, mixed: Tensor, staying: Staying) -> tuple[Tensor, Tensor]:
    """The same of two tensors, in one launch if they are equally wide: a block that has lost
    attention heads for good gathers less than a piece holds.
    """
    if hidden.shape[1] != mixed.shape[1]:
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
            fuse_kernel[(len(staying.before) - 1, _n_steps(first))](
                first, second, taken[0], taken[-1], staying.places, staying.fusing.shares,
                staying.before, staying.after, first.shape[1],
                ROWS=ROWS, STEP=_step(first), BOTH=len(packed) == 2,
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
    gather_kernel[(triton.cdiv(n_rows, ROWS), _n_steps(first))](
        first, second, gathered[0], gathered[-1], sources,
        sources if fusing is None else fusing.joins, sources if fusing is None else fusing.shares,
        n_rows, width,
        ROWS=ROWS, STEP=_step(first), BOTH=len(packed) == 2, WITH_SHARES=fusing is not None,
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
            hidden, restored, or_nothing(self.destination, self.before), self.origin, self.before,
            self.whole, hidden.shape[1],
            ROWS=ROWS, STEP=_step(hidden), ALL=self.destination is None, TO_HIDDEN=to_hidden,
        )  # fmt: skip


class _PutBack(torch.autograd.Function):
    """No row of `restored` is written twice: its gradient passes through to whoever wrote the other
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
        head_importance, head_size, n_tiles, or_nothing(alive, n_tiles), total, staying,
        n_heads, n_slots,
        N_HEADS=n_all_heads, WITH_ALIVE=alive is not None, num_warps=1,
    )  # fmt: skip
    return total, staying


def _step(packed: Tensor) -> int:
    return min(COLUMNS, triton.next_power_of_2(packed.shape[1]))


def _n_steps(packed: Tensor) -> int:
    return triton.cdiv(packed.shape[1], _step(packed))
