"""cascade: what gets little attention leaves, layer after layer.

Wang, Zhang and Han 2021 (SpAtten), arXiv 2012.09852; as Nespolo et al., "Figurative Language
Understanding", §II.D, state it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from litotes.core.errors import UserError
from litotes.encoder.attention.pruning import Plan, Pruning

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
        if importance not in ("received", "value"):
            raise UserError(
                f"importance = {importance!r} is not known to a pruning: write received or value."
            )
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
    """From 1 after the first layer down to `final` after the last."""
    depths = [layer / max(n_layers - 1, 1) for layer in range(n_layers)]
    if schedule == "linear":
        return tuple(1 - (1 - final) * depth for depth in depths)
    return tuple(final**depth for depth in depths)
