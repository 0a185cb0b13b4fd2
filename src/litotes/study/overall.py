"""Numbers over a whole table: a mean over cells, and differences between such means, each with its
interval.

    Σ over cells of weight · macro-F1        mean over seeds

A single cell holds one or two hundred texts, so its interval is wide; the whole table knows more.
Cells of one column hold the same texts
and are resampled jointly: what is hard for all of them cancels in a difference. Seed s of all cells
makes one value of the sum, and the seeds' part is Student's margin of these (`intervals.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.core.counts import Floats
from litotes.evaluation.answer_patterns import patterns
from litotes.evaluation.intervals import scores_of, seed_margin, text_bootstrap, widened
from litotes.evaluation.scores import interval
from litotes.study.plan import Experiment
from litotes.study.results import Answers, Pair, Panel, pairs_of

Weighted = tuple[float, Answers]


def signed(value: float) -> str:
    """A difference, with a minus that is as wide as the plus."""
    return f"{value:+.3f}".replace("-", "−")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval over texts and seeds."""

    value: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Of a difference: whether its sign is known."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def less(self, constant: float) -> Estimate:
        low, high = self.interval
        return Estimate(self.value - constant, (low - constant, high - constant))

    def shown(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"

    def signed(self) -> str:
        low, high = self.interval
        return f"{signed(self.value)} ({signed(low)} to {signed(high)})"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class OverallDifference:
    """Two systems over all cells they share; `elsewhere`: the other experiment that the baseline is
    from.
    """

    system: str
    baseline: str
    task: str
    tested_on: str
    elsewhere: str | None
    n_cells: int
    difference: Estimate

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def overall_differences(
    experiment: Experiment, panels: Mapping[str, Sequence[Panel]]
) -> tuple[OverallDifference, ...]:
    """The experiment's comparisons, each over a whole table; `panels`: those of every experiment,
    by its name.
    """
    together: dict[tuple[str, str, str, str, str | None], list[Pair]] = {}
    for pair in pairs_of(experiment, panels):
        key = (
            pair.system,
            pair.baseline,
            pair.panel.table.task,
            pair.panel.tested_on,
            pair.elsewhere,
        )
        together.setdefault(key, []).append(pair)
    return tuple(
        OverallDifference(
            *key,
            n_cells=len(pairs),
            difference=difference_of([(pair.own, pair.theirs) for pair in pairs]),
        )
        for key, pairs in together.items()
    )


def mean_of(*panels: Panel) -> Estimate:
    """Mean macro-F1 over all cells of the tables."""
    return weighted_sum(
        _evenly([answers for panel in panels for answers in panel.answers.values()], 1.0)
    )


def home_less_elsewhere(*panels: Panel) -> Estimate | None:
    """Mean over the cells tested where they were trained, less the mean over the others; None where
    there are not both.
    """
    home: list[Answers] = []
    elsewhere: list[Answers] = []
    for panel in panels:
        if panel.table.at_home is not None:
            for (row, column), answers in panel.answers.items():
                (home if row == column else elsewhere).append(answers)
    if not home or not elsewhere:
        return None
    return weighted_sum([*_evenly(home, 1.0), *_evenly(elsewhere, -1.0)])


def difference_of(pairs: Sequence[tuple[Answers, Answers]]) -> Estimate:
    """First less second of each pair, mean over the pairs."""
    return weighted_sum(
        [*_evenly([own for own, _ in pairs], 1.0), *_evenly([theirs for _, theirs in pairs], -1.0)]
    )


def less_paper(*panels: Panel) -> Estimate | None:
    """Ours less the paper's, mean over the cells that both have."""
    places = [(panel, place) for panel in panels for place in panel.answers if place in panel.paper]
    if not places:
        return None
    ours = weighted_sum(_evenly([panel.answers[place] for panel, place in places], 1.0))
    return ours.less(float(np.mean([panel.paper[place] for panel, place in places])))


def weighted_sum(parts: Sequence[Weighted]) -> Estimate:
    """Σ weight · macro-F1 with its interval; parts with the same texts are resampled together."""
    by_texts: dict[str, list[Weighted]] = {}
    for weight, answers in parts:
        by_texts.setdefault(answers.texts, []).append((weight, answers))
    by_seed, resampled = np.zeros(1), np.zeros(1)
    for number, together in enumerate(by_texts.values()):
        scores, draws = _together(together, seed=number)
        by_seed, resampled = by_seed + scores, resampled + draws  # (seed,), (resample,)
    value = float(by_seed.mean())
    return Estimate(
        value, widened(value, interval(resampled), seed_margin(by_seed), within=_possible(parts))
    )


def _together(parts: Sequence[Weighted], *, seed: int) -> tuple[Floats, Floats]:
    """The sum over parts with the same texts: by seed (seed,), and of resampled texts, mean over
    seeds (resample,).
    """
    first = parts[0][1]
    weights = np.array([weight for weight, _ in parts])
    found = patterns(
        first.gold, np.vstack([answers.answers for _, answers in parts]), first.n_classes
    )
    scores = scores_of(found).reshape(len(parts), -1)  # (part, seed)
    draws = text_bootstrap(found, seed=seed).reshape(-1, *scores.shape)  # (resample, part, seed)
    return weights @ scores, draws.mean(2) @ weights


def _possible(parts: Sequence[Weighted]) -> tuple[float, float]:
    """What Σ weight · macro-F1 can be at all."""
    weights = [weight for weight, _ in parts]
    return sum(weight for weight in weights if weight < 0), sum(
        weight for weight in weights if weight > 0
    )


def _evenly(answers: Sequence[Answers], total: float) -> list[Weighted]:
    return [(total / len(answers), one) for one in answers]
