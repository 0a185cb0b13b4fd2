"""The second seam of attention: a pruning says which pieces and which attention heads go on.

A layer computes its attention with all that is there; then pieces leave, before the output
projection and the feed-forward part, which are three quarters of a layer's work:

    mixed_l = Attention(h_l)
            →  importance
            →  h_l, mixed_l of the pieces that stay
            →  output projection, norms, feed-forward

A removed piece never comes back. Options of every pruning: `restore` hands the head all pieces, the
removed ones in the state they left in (drop and restore, Kim and Cho 2021, arXiv 2010.07003);
`fuse` puts one piece in the place of all those removed, their mean weighted by importance, which
the others still see (Liang et al. 2022, arXiv 2202.07800).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from litotes.encoder.attention.survivors import Choice, Survivors, fuse_removed


@dataclass(frozen=True)
class AttentionOutput:
    """What the attention of one layer computed.

    received: how much weight each piece got from all queries of its text, by attention head.
    (piece, attention_head)
    value: (piece, attention_head, head_width).
    mixed: each attention head's output before the output projection, of the same shape.
    weights: only where an observer asks, per row block (text, attention_head, query, key), padding
    included (attention/rows.py).
    """

    received: Tensor
    value: Tensor
    mixed: Tensor
    weights: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What goes on after each layer, as shares of a text's own length and of attention heads."""

    pieces: tuple[float, ...]
    heads: tuple[float, ...]

    def counts(self, layer: int, lengths: Sequence[int]) -> list[int]:
        """How many pieces of texts that began with these lengths go on after `layer`: a share,
        rounded down, at least the first piece.
        """
        return [round_share(self.pieces[layer], length) for length in lengths]

    def n_heads(self, layer: int, n_attention_heads: int) -> int:
        return round_share(self.heads[layer], n_attention_heads)

    def needs_importance(self, layer: int, n_attention_heads: int) -> bool:
        """Whether importance has to be known after `layer`: pieces or heads leave here or later."""
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


class Pruning(nn.Module, ABC):
    """Says what goes on. A new pruning gives its `plan` and its own measure of importance."""

    def __init__(
        self,
        n_layers: int,
        n_attention_heads: int,
        width: int,
        *,
        restore: bool = False,
        fuse: bool = False,
    ) -> None:
        super().__init__()
        self.n_layers, self.n_attention_heads, self.width = n_layers, n_attention_heads, width
        self.restore, self.fuse = restore, fuse

    @abstractmethod
    def plan(self) -> Plan:
        """What goes on after each layer; in training mode it may be another one at every call."""

    @abstractmethod
    def importance(
        self, layer: int, hidden: Tensor, survivors: Survivors, attention: AttentionOutput
    ) -> Tensor:
        """How important each piece is, earlier layers included. (piece,)"""

    def with_importance_gradient(self, layer: int, hidden: Tensor, mixed: Tensor) -> Tensor:
        """`mixed` unchanged; a pruning that learns importance attaches its gradient here."""
        return mixed

    def forward(
        self,
        layer: int,
        plan: Plan,
        hidden: Tensor,
        mixed: Tensor,
        survivors: Survivors,
        attention: AttentionOutput,
    ) -> tuple[Tensor, Tensor, Survivors]:
        """Removes pieces after the attention of `layer`, and attention heads for the next one.

        hidden: the pieces' states before the attention; mixed: what it gathered. (piece, width)
        Gives both for the pieces that go on, and their state.
        """
        importance = self.importance(layer, hidden, survivors, attention)
        survivors = replace(survivors, importance=importance.detach())
        mixed = self.with_importance_gradient(layer, hidden, mixed)
        if plan.needs_head_importance(layer, self.n_attention_heads):
            survivors = _add_head_importance(survivors, attention)
            survivors = _keep_best_heads(survivors, plan.n_heads(layer, self.n_attention_heads))
        counts = plan.counts(layer, survivors.whole.lengths)
        if tuple(counts) == survivors.n_real:
            return hidden, mixed, survivors
        return self._remove(survivors.choose(counts), hidden, mixed, survivors)

    def _remove(
        self, choice: Choice, hidden: Tensor, mixed: Tensor, survivors: Survivors
    ) -> tuple[Tensor, Tensor, Survivors]:
        if self.restore:
            survivors = survivors.remember(hidden, choice)
        if self.fuse:
            hidden = fuse_removed(hidden, choice, survivors.importance)
            mixed = fuse_removed(mixed, choice, survivors.importance)
            return hidden, mixed, survivors.with_fused(choice)
        hidden = hidden.index_select(0, choice.kept_places)
        mixed = mixed.index_select(0, choice.kept_places)
        return hidden, mixed, survivors.without(choice)


def _add_head_importance(survivors: Survivors, attention: AttentionOutput) -> Survivors:
    """Adds this layer to s_h = Σ_t Σ_d |E_{h,t,d}|, the size of each attention head's outputs."""
    by_piece = attention.mixed.detach().float().abs().sum(-1)  # (piece, attention_head)
    # (text, attention_head)
    total = survivors.head_importance.index_add(0, survivors.layout.texts, by_piece)
    return replace(survivors, head_importance=total)


def _keep_best_heads(survivors: Survivors, n_heads: int) -> Survivors:
    """The attention heads with the largest outputs go on, in each text its own."""
    total, heads = survivors.head_importance, survivors.heads
    if heads is None:
        if n_heads == total.shape[1]:
            return survivors
        return replace(survivors, heads=total.topk(n_heads).indices.sort().values)
    if n_heads == heads.shape[1]:
        return survivors
    best = total.gather(1, heads).topk(n_heads).indices
    return replace(survivors, heads=heads.gather(1, best).sort().values)
