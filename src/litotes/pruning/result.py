"""What pruning is asked for, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from litotes.core.machine import machine
from litotes.core.one_line import one_line
from litotes.evaluation.evaluate import CellScores
from litotes.model.checkpoint import Model
from litotes.pruning.frontier import Point


@dataclass(frozen=True)
class PruneSettings:
    """What may be lost, and how hard to try.

    loss: macro-F1 points. sure: how often the loss must be within that in a bootstrap over the
    held-out texts.
    targets: times fewer operations than dense, each a point of the frontier. heads: share of the
    attention heads kept for good.
    epochs: with budgets drawn at every step; settle_epochs: with those of a target. teacher: how
    much the dense model's answers count.
    n_searched: training texts on which shares are tried. options: of the pruning `learned`.
    seed: of all that is drawn here; which texts are held out is the dense run's affair.
    """

    loss: float = 0.5
    sure: float = 0.8
    targets: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0)
    heads: float = 0.67
    epochs: int = 6
    settle_epochs: int = 4
    teacher: float = 0.9
    n_searched: int = 192
    seed: int = 0
    options: dict[str, Any] = field(
        default_factory=lambda: {"importance": "value", "fuse": True, "restore": True}
    )


@dataclass(frozen=True)
class PruneResult:
    """The frontier, and the model chosen from it with its scores on the test split; None where no
    point is within the loss.
    """

    settings: PruneSettings
    points: tuple[Point, ...]
    model: Model | None
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        chosen = None if self.chosen is None else self.chosen.flops_ratio
        return one_line(self, n_points=len(self.points), flops_ratio=chosen, model=self.model)

    @property
    def chosen(self) -> Point | None:
        return next((point for point in self.points if point.chosen), None)

    def refusal(self) -> str:
        """Why nothing was chosen, and what to do."""
        best = min(self.points, key=lambda point: point.loss.points)
        low, high = best.loss.interval
        return (
            f"No setting loses at most {self.settings.loss:g} points with a certainty of"
            f" {self.settings.sure:g}: the best, {best.flops_ratio:.1f} times fewer operations,"
            f" loses {best.loss.points:.1f} ({low:.1f} to {high:.1f}). Allow more with --loss, be"
            " less --sure, try milder --targets, or hold more texts out; what is trained is kept."
        )

    def as_json(self) -> dict[str, Any]:
        budget = {"loss": self.settings.loss, "sure": self.settings.sure}
        points = [point.as_json() for point in self.points]
        return {"machine": machine(), "budget": budget, "points": points, "notes": list(self.notes)}
