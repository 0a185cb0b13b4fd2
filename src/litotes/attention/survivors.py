"""Which pieces and attention heads are still there, and how pieces leave a packed tensor.

Four pieces of two texts stay of seven; those that leave are gone from every tensor, the others
close up in their order:

    text       0 0 0 0 | 1 1 1          0 0 | 1 1
    piece      a b c d | e f g    →     a d | e f
    origin     0 1 2 3 | 0 1 2          0 3 | 0 1

How many pieces of a text stay follows from its length alone, so every new layout is known before
the device has computed anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from litotes.text.layout import Layout

FUSED = -1
"""The origin of a piece that stands for all that have left its text."""


@dataclass(frozen=True)
class Choice:
    """Pieces that stay and pieces that leave: their places in the packed tensor, in order, and the
    layouts of both.

    by_importance: places of all pieces, text after text, the most important one first. (piece,)
    before, kept: the layouts of all and of those that stay. Who leaves is worked out only where
    somebody asks.
    """

    by_importance: Tensor
    before: Layout
    kept: Layout

    @cached_property
    def stay(self) -> Tensor:
        """(piece,)"""
        return (
            self.by_importance[self.before.starts[self.kept.texts] + self.kept.positions]
            .sort()
            .values
        )

    @cached_property
    def leave(self) -> Tensor:
        """A text's fused piece, if it has one, is the last. (piece,)"""
        text = self.gone.texts
        return (
            self.by_importance[
                self.before.starts[text] + self.kept.counts[text] + self.gone.positions
            ]
            .sort()
            .values
        )

    @cached_property
    def gone(self) -> Layout:
        return Layout.of(
            [n - kept for n, kept in zip(self.before.lengths, self.kept.lengths, strict=True)],
            self.before.device,
        )


@dataclass(frozen=True)
class Left:
    """Pieces that left together: their last states (piece, width), and their places in the packed
    tensor everything began with.
    """

    hidden: Tensor
    places: Tensor


@dataclass(frozen=True)
class Survivors:
    """The state a pruning carries from layer to layer.

    layout: of the pieces still there. whole: of all pieces, before any left.
    origin: the place each piece had in its own text; FUSED for one that stands for those gone.
    (piece,)
    importance: of each piece, as the pruning counts it. (piece,)
    heads: the attention heads each text still uses, (text, attention_head); None: all.
    head_importance: (text, attention_head)
    n_fused: how many fused pieces, 0 or 1, each text ends in.
    """

    layout: Layout
    whole: Layout
    origin: Tensor
    importance: Tensor
    head_importance: Tensor
    n_fused: tuple[int, ...]
    heads: Tensor | None = None
    left: tuple[Left, ...] = ()

    @classmethod
    def all_of(cls, layout: Layout, n_attention_heads: int) -> Survivors:
        importance = torch.zeros(layout.n_pieces, device=layout.device)
        head_importance = torch.zeros(layout.n_texts, n_attention_heads, device=layout.device)
        return cls(
            layout,
            layout,
            layout.positions,
            importance,
            head_importance,
            n_fused=(0,) * layout.n_texts,
        )

    @property
    def n_real(self) -> tuple[int, ...]:
        """How many pieces each text has beside a fused one."""
        return tuple(n - fused for n, fused in zip(self.layout.lengths, self.n_fused, strict=True))

    def choose(self, counts: Sequence[int]) -> Choice:
        """The `counts` most important pieces of each text stay; its first always does.

        Of two that are alike the earlier one stays.
        """
        score = self.importance.masked_fill(self.origin == FUSED, -torch.inf).masked_fill(
            self.layout.positions == 0, torch.inf
        )
        by_score = score.argsort(descending=True, stable=True)
        order = by_score[self.layout.texts[by_score].argsort(stable=True)]  # text after text
        return Choice(order, self.layout, Layout.of(counts, self.layout.device))

    def without(self, choice: Choice) -> Survivors:
        """The state of the pieces that stay."""
        n_fused = (0,) * len(self.n_fused)
        origin, importance = self.origin[choice.stay], self.importance[choice.stay]
        return replace(
            self, layout=choice.kept, origin=origin, importance=importance, n_fused=n_fused
        )

    def with_fused(self, choice: Choice) -> Survivors:
        """The state of the pieces that stay, and of one in the place of those that leave, wherever
        any do.
        """
        n_fused = tuple(min(n, 1) for n in choice.gone.lengths)
        layout = Layout.of(
            [n + fused for n, fused in zip(choice.kept.lengths, n_fused, strict=True)],
            self.layout.device,
        )
        sums = torch.zeros(layout.n_texts, device=layout.device).index_add(
            0, choice.gone.texts, self.importance[choice.leave]
        )
        origin = torch.cat([self.origin[choice.stay], torch.full_like(choice.kept.counts, FUSED)])
        importance = torch.cat([self.importance[choice.stay], sums])
        places = _places_with_fused(layout, choice)
        return replace(
            self,
            layout=layout,
            origin=origin[places],
            importance=importance[places],
            n_fused=n_fused,
        )

    def remember(self, hidden: Tensor, choice: Choice) -> Survivors:
        """Keeps the states of those that leave, fused ones aside."""
        real = Layout.of(
            [n - fused for n, fused in zip(choice.gone.lengths, self.n_fused, strict=True)],
            self.layout.device,
        )
        gone = choice.leave[choice.gone.starts[real.texts] + real.positions]
        places = self.whole.starts[real.texts] + self.origin[gone]
        return replace(self, left=(*self.left, Left(hidden[gone], places)))

    def restored(self, hidden: Tensor) -> Tensor:
        """All pieces everything began with, those gone in the state they left in. (piece, width)"""
        real = Layout.of(self.n_real, self.layout.device)
        there = self.layout.starts[real.texts] + real.positions
        places = torch.cat(
            [
                self.whole.starts[real.texts] + self.origin[there],
                *(left.places for left in self.left),
            ]
        )
        states = torch.cat([hidden[there], *(left.hidden for left in self.left)])
        return torch.zeros_like(states).index_copy(0, places, states)


def fuse_removed(packed: Tensor, choice: Choice, importance: Tensor) -> Tensor:
    """The pieces that stay and, at the end of every text that loses any, the mean of those that
    leave weighted by importance.
    """
    text = choice.gone.texts
    weights = importance[choice.leave].clamp(min=torch.finfo(importance.dtype).tiny)
    total = torch.zeros(choice.gone.n_texts, device=packed.device).index_add(0, text, weights)
    share = (weights / total[text]).to(packed.dtype)
    fused = packed.new_zeros(choice.gone.n_texts, packed.shape[-1]).index_add(
        0, text, packed[choice.leave] * share[:, None]
    )
    lengths = [
        n + min(lost, 1) for n, lost in zip(choice.kept.lengths, choice.gone.lengths, strict=True)
    ]
    places = _places_with_fused(Layout.of(lengths, packed.device), choice)
    return torch.cat([packed[choice.stay], fused])[places]


def _places_with_fused(layout: Layout, choice: Choice) -> Tensor:
    """Where the pieces of `layout` lie when all that stay come first and then a fused piece for
    each text. (piece,)
    """
    is_fused = layout.positions == choice.kept.counts[layout.texts]
    return torch.where(
        is_fused,
        choice.kept.n_pieces + layout.texts,
        choice.kept.starts[layout.texts] + layout.positions,
    )
