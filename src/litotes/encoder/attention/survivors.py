"""Which pieces and attention heads are still there, and how pieces leave a packed tensor.

Of seven pieces of two texts four stay; those that leave are gone from every tensor, the others
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
from itertools import compress

import torch
from torch import Tensor

from litotes.encoder.layout import Layout

FUSED = -1
"""The origin of a piece that stands for all pieces removed from its text."""


@dataclass(frozen=True)
class Choice:
    """Which pieces stay and which leave.

    by_importance: places of all pieces in the packed tensor, text after text, the most important
    one first. (piece,)
    before, kept: the layouts of all pieces and of those that stay. What leaves is computed only
    when asked for.
    """

    by_importance: Tensor
    before: Layout
    kept: Layout

    @cached_property
    def kept_places(self) -> Tensor:
        """The places of the pieces that stay, in order. (piece,)"""
        ranks = self.before.starts[self.kept.texts] + self.kept.positions
        return self.by_importance[ranks].sort().values

    @cached_property
    def removed(self) -> Layout:
        """The layout of the pieces that leave."""
        n_removed = [
            n - n_kept for n, n_kept in zip(self.before.lengths, self.kept.lengths, strict=True)
        ]
        return Layout.of(n_removed, self.before.device)

    @cached_property
    def removed_places(self) -> Tensor:
        """The places of the pieces that leave, in order; a text's fused piece, if any, is last.
        (piece,)
        """
        text = self.removed.texts
        ranks = self.before.starts[text] + self.kept.counts[text] + self.removed.positions
        return self.by_importance[ranks].sort().values

    @cached_property
    def n_fused(self) -> tuple[int, ...]:
        """How many fused pieces, 0 or 1, each text needs."""
        return tuple(min(n, 1) for n in self.removed.lengths)

    @cached_property
    def kept_and_fused(self) -> Layout:
        """The layout of the pieces that stay and, after them, the fused piece of each text."""
        lengths = [n + fused for n, fused in zip(self.kept.lengths, self.n_fused, strict=True)]
        return Layout.of(lengths, self.before.device)

    @cached_property
    def fused_places(self) -> Tensor:
        """Where the pieces of `kept_and_fused` lie when all that stay come first and then a fused
        piece for each text. (piece,)
        """
        layout = self.kept_and_fused
        is_fused = layout.positions == self.kept.counts[layout.texts]
        kept_place = self.kept.starts[layout.texts] + layout.positions
        return torch.where(is_fused, self.kept.n_pieces + layout.texts, kept_place)


@dataclass(frozen=True)
class RemovedPieces:
    """Pieces that left together: their last states (piece, width), and their places in the packed
    tensor everything began with. (piece,)
    """

    hidden: Tensor
    places: Tensor


@dataclass(frozen=True)
class Survivors:
    """The state a pruning carries from layer to layer.

    layout: of the pieces still there. whole: of all pieces, before any were removed.
    origin: the place each piece had in its own text; FUSED for one that stands for removed pieces.
    (piece,)
    importance: of each piece, as the pruning measures it. (piece,)
    heads: the attention heads each text still uses, (text, attention_head); None: all.
    head_importance: (text, attention_head)
    n_fused: how many fused pieces, 0 or 1, each text ends in.
    removed: what left so far, if the pruning remembers it to restore it.
    """

    layout: Layout
    whole: Layout
    origin: Tensor
    importance: Tensor
    head_importance: Tensor
    n_fused: tuple[int, ...]
    heads: Tensor | None = None
    removed: tuple[RemovedPieces, ...] = ()

    @classmethod
    def all_of(cls, layout: Layout, n_attention_heads: int) -> Survivors:
        return cls(
            layout,
            whole=layout,
            origin=layout.positions,
            importance=torch.zeros(layout.n_pieces, device=layout.device),
            head_importance=torch.zeros(layout.n_texts, n_attention_heads, device=layout.device),
            n_fused=(0,) * layout.n_texts,
        )

    @property
    def n_real(self) -> tuple[int, ...]:
        """How many pieces each text has, not counting a fused one."""
        return tuple(n - fused for n, fused in zip(self.layout.lengths, self.n_fused, strict=True))

    def choose(self, counts: Sequence[int]) -> Choice:
        """The `counts` most important pieces of each text stay; its first always does.

        Of two equally important ones the earlier stays.
        """
        score = self.importance.masked_fill(self.origin == FUSED, -torch.inf)
        score = score.masked_fill(self.layout.positions == 0, torch.inf)
        by_score = score.argsort(descending=True, stable=True)
        order = by_score[self.layout.texts[by_score].argsort(stable=True)]  # text after text
        return Choice(order, self.layout, Layout.of(counts, self.layout.device))

    def without(self, choice: Choice) -> Survivors:
        """The state of the pieces that stay."""
        return replace(
            self,
            layout=choice.kept,
            origin=self.origin[choice.kept_places],
            importance=self.importance[choice.kept_places],
            n_fused=(0,) * len(self.n_fused),
        )

    def with_fused(self, choice: Choice) -> Survivors:
        """The state of the pieces that stay and, in texts that lose any, of one in their place."""
        kept, removed = choice.kept_places, choice.removed_places
        # the fused piece is as important as all it stands for together, (text,)
        sums = torch.zeros(choice.kept.n_texts, device=self.layout.device)
        sums = sums.index_add(0, choice.removed.texts, self.importance[removed])
        importance = torch.cat([self.importance[kept], sums])
        origin = torch.cat([self.origin[kept], torch.full_like(choice.kept.counts, FUSED)])
        return replace(
            self,
            layout=choice.kept_and_fused,
            origin=origin[choice.fused_places],
            importance=importance[choice.fused_places],
            n_fused=choice.n_fused,
        )

    def keep_texts(self, stays: Tensor) -> tuple[Survivors, Tensor]:
        """The state without the texts that leave whole, and the places of the pieces that stay.

        stays: (text,), bool. places: (piece,)
        """
        chosen = stays.tolist()
        places = stays[self.layout.texts].nonzero().squeeze(1)
        whole = _keep_lengths(self.whole, chosen)
        # where each text that stays begins in the whole tensor without the others, (text,)
        starts = torch.zeros_like(self.whole.starts).masked_scatter(stays, whole.starts)
        removed = tuple(_keep_removed(one, self.whole, stays, starts) for one in self.removed)
        state = replace(
            self,
            layout=_keep_lengths(self.layout, chosen),
            whole=whole,
            origin=self.origin[places],
            importance=self.importance[places],
            head_importance=self.head_importance[stays],
            n_fused=tuple(compress(self.n_fused, chosen)),
            heads=None if self.heads is None else self.heads[stays],
            removed=removed,
        )
        return state, places

    def remember(self, hidden: Tensor, choice: Choice) -> Survivors:
        """Keeps the states of the pieces that leave, except fused ones."""
        n_real = [n - fused for n, fused in zip(choice.removed.lengths, self.n_fused, strict=True)]
        real = Layout.of(n_real, self.layout.device)
        leaving = choice.removed_places[choice.removed.starts[real.texts] + real.positions]
        places = self.whole.starts[real.texts] + self.origin[leaving]
        return replace(self, removed=(*self.removed, RemovedPieces(hidden[leaving], places)))

    def restore(self, hidden: Tensor) -> Tensor:
        """All pieces everything began with, removed ones in the state they left in.

        (piece, width)
        """
        real = Layout.of(self.n_real, self.layout.device)
        survivors = self.layout.starts[real.texts] + real.positions
        places = [self.whole.starts[real.texts] + self.origin[survivors]]
        states = [hidden[survivors]]
        for removed in self.removed:
            places.append(removed.places)
            states.append(removed.hidden)
        joined = torch.cat(states)
        return torch.zeros_like(joined).index_copy(0, torch.cat(places), joined)


def _keep_lengths(layout: Layout, chosen: Sequence[bool]) -> Layout:
    return Layout.of(list(compress(layout.lengths, chosen)), layout.device)


def _keep_removed(
    removed: RemovedPieces, whole: Layout, stays: Tensor, starts: Tensor
) -> RemovedPieces:
    """Of pieces that left earlier those whose texts stay. starts: where these begin now, (text,)"""
    text = whole.texts[removed.places]  # (piece,)
    places = removed.places - whole.starts[text] + starts[text]
    is_kept = stays[text]
    return RemovedPieces(removed.hidden[is_kept], places[is_kept])


def fuse_removed(packed: Tensor, choice: Choice, importance: Tensor) -> Tensor:
    """The pieces that stay and, at the end of every text that loses any, the mean of those that
    leave weighted by importance.
    """
    text, n_texts = choice.removed.texts, choice.removed.n_texts
    weights = importance[choice.removed_places].clamp(min=torch.finfo(importance.dtype).tiny)
    total = torch.zeros(n_texts, device=packed.device).index_add(0, text, weights)
    share = (weights / total[text]).to(packed.dtype)  # (leaving piece,)
    leaving = packed[choice.removed_places] * share[:, None]
    fused = packed.new_zeros(n_texts, packed.shape[-1]).index_add(0, text, leaving)  # (text, width)
    return torch.cat([packed[choice.kept_places], fused])[choice.fused_places]
