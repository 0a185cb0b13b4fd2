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
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.layout import Plan
from litotes.encoder.operations import TORCH, Operations, Seen, State, Value


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
        """Plans what goes on after each layer; in training mode perhaps anew at every call."""

    def factor(self, ops: Operations, layer: int, hidden: Value) -> Value | None:
        """Returns what multiplies the importance of pieces in a layer, (piece,); None: nothing."""
        return None

    def importance(self, ops: Operations, layer: int, state: State, seen: Seen) -> Value:
        """Computes how important each piece is, earlier layers included. (piece,)

        importance_l = (importance_{l−1} + received_l) × factor_l, unless a pruning says otherwise.
        """
        factor = self.factor(ops, layer, state.hidden)
        return ops.add_received(state.importance, seen, factor, by_value=self.by_value)

    def with_importance_gradient(self, layer: int, hidden: Tensor, mixed: Tensor) -> Tensor:
        """`mixed` unchanged; a pruning that learns importance attaches its gradient here."""
        return mixed


# none: every piece and every attention head goes on.


class KeepAll(Pruning):
    """Nothing leaves."""

    def __init__(self, n_layers: int, n_attention_heads: int, width: int) -> None:
        super().__init__(n_layers, n_attention_heads, width)

    def plan(self) -> Plan:
        return Plan((1.0,) * self.n_layers, (1.0,) * self.n_layers)


# cascade: what gets little attention leaves, layer after layer.
#
# Wang, Zhang and Han 2021 (SpAtten), arXiv 2012.09852; as Nespolo et al., "Figurative Language
# Understanding", §II.D, state it.

SCHEDULES = ("authors", "linear", "geometric")
AUTHORS_PIECES, AUTHORS_HEADS = 0.9, 0.97
"""What the authors keep at every second layer: 0.53 of the pieces and 0.83 of the attention heads
after twelve layers.
"""


class Cascade(Pruning):
    """s_t = Σ_layers Σ_heads Σ_queries w[h, q, t]: pieces with the smallest sums leave; heads by
    Σ|output|.

    schedule: `authors` (0.9 of the pieces and 0.97 of the attention heads at every second layer),
    `linear` or `geometric` (down to `final`, 0.5 unless said, and `final_heads`, 1 unless said,
    after the last layer), or a list with the share of pieces that goes on after each layer.
    importance: `received`, the formula above, or `value`, where every weight counts by the length
    of the value it moves (Kobayashi et al. 2020, arXiv 2004.10102).
    """

    def __init__(
        self,
        n_layers: int,
        n_attention_heads: int,
        width: int,
        *,
        schedule: str | Sequence[float] = "authors",
        final: float | None = None,
        final_heads: float | None = None,
        importance: Literal["received", "value"] = "received",
        restore: bool = False,
        fuse: bool = False,
    ) -> None:
        by_value = importance == "value"
        super().__init__(
            n_layers, n_attention_heads, width, by_value=by_value, restore=restore, fuse=fuse
        )
        self._plan = make_plan(schedule, n_layers, final=final, final_heads=final_heads)

    def plan(self) -> Plan:
        return self._plan


def make_plan(
    schedule: str | Sequence[float],
    n_layers: int,
    *,
    final: float | None,
    final_heads: float | None,
) -> Plan:
    """The shares a schedule stands for. Named ones leave the first layer as it is."""
    _check_options(schedule, final=final, final_heads=final_heads)
    if not isinstance(schedule, str):
        pieces = check_shares(schedule, n_layers)
        return Plan(pieces, _interpolate("geometric", final_heads or 1.0, n_layers))
    if schedule == "authors":
        n_cuts = [(layer + 1) // 2 for layer in range(n_layers)]  # at layers 1, 3, 5, …
        heads = tuple(AUTHORS_HEADS**n for n in n_cuts)
        return Plan(tuple(AUTHORS_PIECES**n for n in n_cuts), heads)
    pieces = _interpolate(schedule, final or 0.5, n_layers)
    return Plan(pieces, _interpolate(schedule, final_heads or 1.0, n_layers))


def _check_options(
    schedule: str | Sequence[float], *, final: float | None, final_heads: float | None
) -> None:
    for name, share in (("final", final), ("final_heads", final_heads)):
        if share is not None and not 0 < share <= 1:
            raise UserError(
                f"{name} = {share} is not a share: choose a number above 0 and up to 1."
            )
    if final is not None and schedule not in ("linear", "geometric"):
        raise UserError(
            f"final = {final} goes with the schedules linear and geometric; this schedule already"
            " says what goes on."
        )
    if schedule == "authors" and final_heads is not None:
        raise UserError(
            f"final_heads = {final_heads} does not go with the authors' schedule. Choose linear,"
            " geometric or a list."
        )
    if isinstance(schedule, str) and schedule not in SCHEDULES:
        raise UserError(
            f"schedule = {schedule!r} is not known: write {', '.join(SCHEDULES)}, or a list with a"
            " share for every layer."
        )


def check_shares(shares: Sequence[float], n_layers: int) -> tuple[float, ...]:
    """The shares as numbers, if they fit the encoder and never rise."""
    if len(shares) != n_layers:
        raise UserError(f"{len(shares)} shares for {n_layers} layers: give one for every layer.")
    numbers = tuple(float(share) for share in shares)
    in_range = all(0 < share <= 1 for share in numbers)
    rises = any(after > before for before, after in pairwise(numbers))
    if rises or not in_range:
        raise UserError(
            f"{list(shares)} cannot be what goes on after each layer: shares lie above 0, up to 1,"
            " and never rise."
        )
    return numbers


def _interpolate(schedule: str, final: float, n_layers: int) -> tuple[float, ...]:
    """Interpolates from 1 after the first layer down to `final` after the last."""
    depths = [layer / max(n_layers - 1, 1) for layer in range(n_layers)]
    if schedule == "linear":
        return tuple(1 - (1 - final) * depth for depth in depths)
    return tuple(final**depth for depth in depths)


# learned: how many pieces go on after each layer is found for a target, by training that removes
# them.
#
# Kim and Cho 2021 (Length-Adaptive Transformer), arXiv 2010.07003: a model trained with budgets
# drawn afresh at every step works with all of them, so that the best ones can be searched for
# afterwards (pruning/choice.py). The result of the search is `shares`.

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
        draws = self.training and self.explore and torch.rand(()).item() < self.explore
        return Plan(draw_shares(self.shares) if draws else self.shares, (1.0,) * self.n_layers)

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
