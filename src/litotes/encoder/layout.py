"""Where each text lies in a packed tensor.

Texts are laid end to end along the first axis, `(piece, …)`, with their lengths alongside:
nothing is padded. Three texts of 3, 1 and 2 pieces:

    piece      0 1 2 | 3 | 4 5
    text       0 0 0 | 1 | 2 2
    position   0 1 2 | 0 | 0 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """The lengths of packed texts, and the index tensors that follow, made once on `device`.

    alike: the texts are short and nearly of one length, so attention does better with all of them
    in one block of rows than with a block for each, on a CPU too.
    fused: for each text 1 if it ends in a piece that stands for removed ones, else 0; empty: none
    does.
    """

    lengths: tuple[int, ...]
    device: torch.device
    alike: bool = field(default=False, kw_only=True)
    fused: tuple[int, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(
        cls, lengths: Sequence[int], device: torch.device | str = "cpu", **options: Any
    ) -> Layout:
        return cls(tuple(lengths), torch.device(device), **options)

    def keep(self, chosen: Sequence[bool]) -> Layout:
        """Drops the texts that are not chosen."""
        fused = tuple(compress(self.fused, chosen))
        return Layout.of(list(compress(self.lengths, chosen)), self.device, fused=fused)

    @property
    def n_texts(self) -> int:
        return len(self.lengths)

    @property
    def n_pieces(self) -> int:
        return sum(self.lengths)

    @property
    def n_real(self) -> tuple[int, ...]:
        """The number of pieces in each text, not counting a fused one."""
        if not any(self.fused):
            return self.lengths
        return tuple(n - fused for n, fused in zip(self.lengths, self.fused, strict=True))

    @property
    def longest(self) -> int:
        return max(self.lengths)

    @cached_property
    def counts(self) -> Tensor:
        """Lengths as a tensor. (text,)"""
        return torch.tensor(self.lengths, dtype=torch.long).to(self.device, non_blocking=True)

    @cached_property
    def starts(self) -> Tensor:
        """The place of each text's first piece. (text,)"""
        lengths = torch.tensor(self.lengths, dtype=torch.long)
        return (lengths.cumsum(0) - lengths).to(self.device, non_blocking=True)

    @cached_property
    def texts(self) -> Tensor:
        """The text each piece belongs to. (piece,)"""
        text = torch.arange(self.n_texts).repeat_interleave(
            torch.tensor(self.lengths), output_size=self.n_pieces
        )
        return text.to(self.device, non_blocking=True)

    @cached_property
    def positions(self) -> Tensor:
        """Each piece's place in its own text. (piece,)"""
        return torch.arange(self.n_pieces, device=self.device) - self.starts[self.texts]

    @cached_property
    def firsts(self) -> Layout:
        """The layout of the first pieces alone."""
        return Layout((1,) * self.n_texts, self.device)

    @cached_property
    def bounds(self) -> Tensor:
        """Where each text begins, and where the last one ends. (text + 1,)"""
        ends = torch.tensor((0, *self.lengths), dtype=torch.long).cumsum(0)
        return ends.to(self.device, non_blocking=True)


@dataclass(frozen=True)
class BucketLayout(Layout):
    """Texts in a tensor of a fixed number of rows: only the device knows their lengths.

    The rows left over form one more text, which is no one's.
    """

    fixed_bounds: Tensor
    rows: int

    @classmethod
    def of_bounds(cls, bounds: Tensor, n_rows: int) -> BucketLayout:
        """bounds: where each text begins, and where the last one ends. (text + 1,)"""
        ends = torch.full_like(bounds[:1], n_rows)
        return cls((), bounds.device, torch.cat([bounds, ends]).long(), n_rows)

    @classmethod
    def of_firsts(cls, n_texts: int, device: torch.device) -> BucketLayout:
        """Gives each text one row."""
        return cls((), device, torch.arange(n_texts + 1, device=device), n_texts)

    @property
    def n_texts(self) -> int:
        return len(self.fixed_bounds) - 1

    @property
    def n_pieces(self) -> int:
        return self.rows

    @property
    def longest(self) -> int:
        raise TypeError("only the device knows how long the texts of a bucket are")

    @property
    def bounds(self) -> Tensor:
        return self.fixed_bounds

    @property
    def starts(self) -> Tensor:
        return self.fixed_bounds[:-1]

    @property
    def counts(self) -> Tensor:
        return self.fixed_bounds.diff()

    @cached_property
    def texts(self) -> Tensor:
        places = torch.arange(self.rows, device=self.device)
        return torch.searchsorted(self.fixed_bounds[1:], places, right=True)

    @property
    def firsts(self) -> Layout:
        return BucketLayout.of_firsts(self.n_texts, self.device)


@dataclass(frozen=True)
class Batch:
    """Texts laid end to end. pieces, segments: (piece,)"""

    pieces: Tensor
    segments: Tensor
    layout: Layout

    @property
    def positions(self) -> Tensor:
        """(piece,)"""
        return self.layout.positions


@dataclass(frozen=True)
class Plan:
    """The shares of a text's own length and of attention heads that go on after each layer."""

    pieces: tuple[float, ...]
    heads: tuple[float, ...]

    def counts(self, layer: int, lengths: Sequence[int]) -> list[int]:
        """Counts how many pieces of texts that began with these lengths go on after `layer`: a
        share, rounded down, at least the first piece.
        """
        return [round_share(self.pieces[layer], length) for length in lengths]

    def n_heads(self, layer: int, n_attention_heads: int) -> int:
        return round_share(self.heads[layer], n_attention_heads)

    def removes_pieces(self, layer: int) -> bool:
        """Tells whether pieces leave after `layer`, of texts long enough."""
        return self.pieces[layer] != (self.pieces[layer - 1] if layer else 1.0)

    def needs_importance(self, layer: int, n_attention_heads: int) -> bool:
        """Tells whether importance is needed after `layer`: pieces or heads leave here or later."""
        before = self.pieces[layer - 1] if layer else 1.0
        return self.pieces[-1] != before or self.needs_head_importance(layer, n_attention_heads)

    def needs_head_importance(self, layer: int, n_attention_heads: int) -> bool:
        """The same for attention heads.

        The last layer does not count: there is no later layer that could do without a head.
        """
        before = self.n_heads(layer - 1, n_attention_heads) if layer else n_attention_heads
        return any(
            self.n_heads(later, n_attention_heads) < before
            for later in range(layer, len(self.heads) - 1)
        )

    def for_firsts_only(self) -> Plan:
        """The plan of a walk whose last layer computes only first pieces: no others to remove."""
        before_last = self.pieces[-2] if len(self.pieces) > 1 else 1.0
        return Plan((*self.pieces[:-1], before_last), self.heads)


def round_share(share: float, whole: int) -> int:
    """A share of a number of things, rounded down (0.9 of 10 is 9, whatever floating point says),
    but never nothing.
    """
    return max(1, math.floor(share * whole + 1e-9))
