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

from abc import ABC, abstractmethod

from torch import Tensor, nn

from litotes.encoder.layout import Plan
from litotes.encoder.operations import Operations, Seen, State, Value


class Pruning(nn.Module, ABC):
    """Says what goes on. A new pruning gives its `plan`, and its own measure of importance if it is
    not the weight that pieces received.

    by_value: every weight counts by the length of the value it moves (Kobayashi et al. 2020, arXiv
    2004.10102).
    """

    def __init__(
        self,
        n_layers: int,
        n_attention_heads: int,
        width: int,
        *,
        by_value: bool = False,
        restore: bool = False,
        fuse: bool = False,
    ) -> None:
        super().__init__()
        self.n_layers, self.n_attention_heads, self.width = n_layers, n_attention_heads, width
        self.by_value, self.restore, self.fuse = by_value, restore, fuse

    @abstractmethod
    def plan(self) -> Plan:
        """What goes on after each layer; in training mode it may be another one at every call."""

    def factor(self, ops: Operations, layer: int, hidden: Value) -> Value | None:
        """What multiplies the importance of pieces in a layer, (piece,); None: nothing."""
        return None

    def importance(self, ops: Operations, layer: int, state: State, seen: Seen) -> Value:
        """How important each piece is, earlier layers included. (piece,)

        importance_l = (importance_{l−1} + received_l) × factor_l, unless a pruning says otherwise.
        """
        factor = self.factor(ops, layer, state.hidden)
        return ops.add_received(state.importance, seen, factor, by_value=self.by_value)

    def with_importance_gradient(self, layer: int, hidden: Tensor, mixed: Tensor) -> Tensor:
        """`mixed` unchanged; a pruning that learns importance attaches its gradient here."""
        return mixed
