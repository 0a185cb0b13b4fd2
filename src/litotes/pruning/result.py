"""What pruning is asked for, and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from litotes.core.machine import machine
from litotes.core.text import one_line
from litotes.evaluation.evaluate import CellScores
from litotes.model.checkpoint import Model
from litotes.pruning.frontier import Loss, Point

_NORMAL = {0.95: 1.645, 0.975: 1.96}
"""Quantiles of the normal distribution."""
_MOST_TIMES = 50


@dataclass(frozen=True)
class PruneSettings:
    """What may be lost, and how hard to try.

    loss: macro-F1 points that may be expected to be lost. sure: how likely the loss must be within
    that instead; None: as likely as it comes.
    targets: times fewer operations than dense, each a point of the frontier. heads: share of the
    attention heads kept for good.
    epochs: with budgets drawn at every step; settle_epochs: with those of a target. teacher: how
    much the dense model's answers count.
    folds: models trained without a fold of the training texts each, whose answers to that fold are
    evidence as well; 0: none. unlabelled: a source of texts on which only agreement counts.
    held_out: a source of labelled texts that report and do not choose. control: whether dense is
    trained on as long as the pruned ones, to compare.
    n_searched: training texts on which shares are tried. options: of the pruning `learned`.
    seed: of all that is drawn here; which texts are held out is the dense run's affair.
    """

    loss: float = 0.5
    sure: float | None = None
    targets: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0)
    heads: float = 0.67
    epochs: int = 6
    settle_epochs: int = 4
    teacher: float = 0.9
    n_searched: int = 192
    folds: int = 0
    unlabelled: str | None = None
    held_out: str | None = None
    control: bool = True
    seed: int = 0
    options: dict[str, Any] = field(
        default_factory=lambda: {"importance": "value", "fuse": True, "restore": True}
    )


@dataclass(frozen=True)
class TextCounts:
    """Which texts chose, and which only reported.

    kept_apart: labelled, answered by the models to choose from. in_folds: labelled, answered by
    models that were trained without them. unlabelled: by agreement alone. held_out, test: no part
    in the choice.
    """

    kept_apart: int
    in_folds: int = 0
    n_folds: int = 0
    unlabelled: int = 0
    held_out: int = 0
    test: int = 0

    @property
    def n_labelled(self) -> int:
        """The labelled texts that chose."""
        return self.kept_apart + self.in_folds

    def in_words(self) -> str:
        chose = [f"{self.kept_apart} labelled texts kept apart"]
        if self.in_folds:
            chose.append(f"{self.in_folds} training texts in {self.n_folds} folds")
        if self.unlabelled:
            chose.append(f"the agreement on {self.unlabelled} texts without a label")
        reported = []
        if self.held_out:
            reported.append(f"{self.held_out} held-out texts")
        if self.test:
            reported.append(f"{self.test} texts of the test split")
        words = f"Chosen by {' and '.join(chose)}; "
        if reported:
            return f"{words}reported by {' and '.join(reported)}, which had no part in the choice."
        return f"{words}no other texts report what it loses (--held-out names some)."

    def as_json(self) -> dict[str, Any]:
        chose = {"kept_apart": self.kept_apart, "in_folds": self.in_folds, "folds": self.n_folds}
        return {
            "chosen_by": {**chose, "unlabelled": self.unlabelled},
            "reported_by": {"held_out": self.held_out, "test": self.test},
        }


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
    texts: TextCounts | None = None

    def __repr__(self) -> str:
        chosen = None if self.chosen is None else self.chosen.flops_ratio
        return one_line(self, n_points=len(self.points), flops_ratio=chosen, model=self.model)

    @property
    def chosen(self) -> Point | None:
        return next((point for point in self.points if point.chosen), None)

    def refusal(self) -> str:
        """Why nothing was chosen, and what would be needed."""
        budget, sure = self.settings.loss, self.settings.sure
        best = _nearest([point for point in self.points if point.kind == "pruned"], sure)
        guess = best.best_guess
        low, high = guess.interval
        if sure is None:
            claim, less = f"No setting is expected to lose at most {budget:g} points", ""
        else:
            claim = f"No setting loses at most {budget:g} points with a certainty of {sure:g}"
            less = ", ask for less with --sure,"
        return (
            f"{claim}: the best, {best.flops_ratio:.1f} times fewer operations, is expected to lose"
            f" {guess.points:.1f} ({low:.1f} to {high:.1f}), within the budget with a probability"
            f" of {guess.chance_within:.2f}; {self._more_texts(guess)}. Allow more with --loss"
            f"{less} or try milder --targets; what is trained is kept."
        )

    def _more_texts(self, guess: Loss) -> str:
        """About how many more labelled texts would settle it, for errors that fall as 1 / √n."""
        low, high = guess.interval
        n_labelled = 0 if self.texts is None else self.texts.n_labelled
        margin = abs(self.settings.loss - guess.points)
        if not n_labelled or margin < (high - low) / 100:
            return "it lies so near the budget that no number of texts would tell"
        needed = _NORMAL[0.95] * (high - low) / (2 * _NORMAL[0.975]) / margin
        n_more = math.ceil(n_labelled * max(needed**2 - 1, 0) / 50) * 50
        if not n_more:
            return f"the {n_labelled} labelled texts suffice to tell, and more would not change it"
        if n_more > _MOST_TIMES * n_labelled:
            return f"more than {_MOST_TIMES} times the {n_labelled} labelled texts would be needed"
        how = "" if self.texts is not None and self.texts.n_folds else ", --folds 4"
        return (
            f"about {n_more:,} more labelled texts than these {n_labelled:,} would tell (a larger"
            f" training.reserved{how})"
        )

    def as_json(self) -> dict[str, Any]:
        budget = {"loss": self.settings.loss, "sure": self.settings.sure}
        points = [point.as_json() for point in self.points]
        texts = None if self.texts is None else self.texts.as_json()
        notes = list(self.notes)
        return {
            "machine": machine(),
            "budget": budget,
            "texts": texts,
            "points": points,
            "notes": notes,
        }


def _nearest(points: Sequence[Point], sure: float | None) -> Point:
    """The point that comes nearest to the budget."""
    if sure is None:
        return min(points, key=lambda point: point.best_guess.points)
    return max(points, key=lambda point: point.best_guess.chance_within)
