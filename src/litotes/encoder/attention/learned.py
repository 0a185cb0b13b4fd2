"""learned: how many pieces go on after each layer is found for a target, by training that removes
them.

Kim and Cho 2021 (Length-Adaptive Transformer), arXiv 2010.07003: a model trained with budgets drawn
afresh at every step works with all of them, so that the best ones can be searched for afterwards
(pruning/search.py). The result of the search is `shares`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.attention.cascade import check_shares
from litotes.encoder.attention.pruning import Plan, Pruning
from litotes.encoder.operations import Operations, Value
from litotes.encoder.torch_operations import TORCH

LOG_RANGE = 3.0
"""A scorer can make a piece e³, 20 times, as important or as unimportant as its attention says, and
no more.
"""


class Learned(Pruning):
    """Shares of pieces per layer found by a search; importance by attention, times what a scorer
    learns: s_t e^{u·h_t}.

    shares: what goes on after each layer; empty: 0.25 after the last, by the same factor in each.
    explore: the chance that a training step draws shares of its own, from these up to 1 (length
    drop).
    importance: `received` or `value` as in cascade, or `scorer`: `value` times a factor learned for
    each layer from the piece's state.
    """

    def __init__(
        self,
        n_layers: int,
        n_attention_heads: int,
        width: int,
        *,
        shares: Sequence[float] = (),
        explore: float = 0.0,
        importance: Literal["received", "value", "scorer"] = "received",
        restore: bool = True,
        fuse: bool = False,
    ) -> None:
        if importance not in ("received", "value", "scorer"):
            raise UserError(
                f"importance = {importance!r} is not known to the pruning 'learned': write"
                " received, value or scorer."
            )
        if not 0 <= explore <= 1:
            raise UserError(
                f"explore = {explore} is not a probability: choose a number from 0 to 1."
            )
        by_value = importance != "received"
        super().__init__(
            n_layers, n_attention_heads, width, by_value=by_value, restore=restore, fuse=fuse
        )
        geometric = [0.25 ** ((layer + 1) / n_layers) for layer in range(n_layers)]
        self.shares = check_shares(shares or geometric, n_layers)
        self.explore = explore
        self.scorers = nn.Linear(width, n_layers, bias=False) if importance == "scorer" else None
        if self.scorers is not None:
            nn.init.zeros_(self.scorers.weight)

    def plan(self) -> Plan:
        shares = self.shares
        if self.training and self.explore and torch.rand(()).item() < self.explore:
            shares = draw_shares(shares)
        return Plan(shares, (1.0,) * self.n_layers)

    def factor(self, ops: Operations, layer: int, hidden: Value) -> Value | None:
        return None if self.scorers is None else ops.exp(self._score(ops, layer, hidden))

    def with_importance_gradient(self, layer: int, hidden: Tensor, mixed: Tensor) -> Tensor:
        """The same values, but their gradient tells the scorer which pieces the loss wants more
        of.
        """
        if self.scorers is None or not self.training:
            return mixed
        score = self._score(TORCH, layer, hidden)[:, None]
        return mixed * (1 + score - score.detach()).to(mixed.dtype)

    def _score(self, ops: Operations, layer: int, hidden: Value) -> Value:
        """(piece,)"""
        assert self.scorers is not None
        score = ops.dot(hidden, self.scorers.weight[layer])
        return ops.tanh(score / LOG_RANGE) * LOG_RANGE


def draw_shares(lowest: Sequence[float]) -> tuple[float, ...]:
    """Shares between the lowest ones and 1 that never rise: one height is drawn for all layers,
    then a small deviation for each.
    """
    height = torch.rand(()).item()
    shares, before = [], 1.0
    for share in lowest:
        own = min(max(height + 0.5 * (torch.rand(()).item() - 0.5), 0.0), 1.0)
        before = min(before, share + (1 - share) * own)
        shares.append(before)
    return tuple(shares)
