"""Numbers over a whole table: a mean over cells, and differences between such means, each with its
interval.

    Σ over cells of weight · macro-F1        mean over seeds

A single cell holds one or two hundred texts, so its interval is wide; the whole table knows more.
Cells of one column hold the same texts and are resampled jointly: what is hard for all of them
cancels in a difference. Seed s of all cells makes one value of the sum, and the seeds' part is
Student's margin of these (`intervals.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.core.numbers import Floats, format_signed
from litotes.evaluation.scores import interval
from litotes.evaluation.significance import (
    find_patterns,
    scores_of,
    seed_margin,
    text_bootstrap,
    widen_interval,
)
from litotes.study.comparisons import CellPair, Tables, find_pairs
from litotes.study.plan import Experiment
from litotes.study.run_files import CellAnswers
from litotes.study.tables import ScoreTable

Weighted = tuple[float, CellAnswers]


def signed(value: float) -> str:
    """A difference, with a minus that is as wide as the plus."""
    return format_signed(value, 3, minus="−")


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

    def text(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"

    def signed(self) -> str:
        low, high = self.interval
        return f"{signed(self.value)} ({signed(low)} to {signed(high)})"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class OverallDifference:
    """Two systems over all cells they share.

    elsewhere: the other experiment that the baseline is from.
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


def overall_differences(experiment: Experiment, tables: Tables) -> tuple[OverallDifference, ...]:
    """The experiment's comparisons, each over a whole table."""
    groups: dict[tuple[str, str, str, str, str | None], list[CellPair]] = {}
    for pair in find_pairs(experiment, tables):
        test = pair.table.matrix.task, pair.table.tested_on
        groups.setdefault((pair.system, pair.baseline, *test, pair.elsewhere), []).append(pair)
    found = []
    for key, pairs in groups.items():
        difference = difference_of([(pair.own, pair.theirs) for pair in pairs])
        found.append(OverallDifference(*key, n_cells=len(pairs), difference=difference))
    return tuple(found)


def mean_of(*tables: ScoreTable) -> Estimate:
    """Mean macro-F1 over all cells of the tables."""
    cells: list[CellAnswers] = []
    for table in tables:
        cells += table.answers.values()
    return weighted_sum(_evenly(cells, 1.0))


def home_less_elsewhere(*tables: ScoreTable) -> Estimate | None:
    """Mean over the cells tested where they were trained, less the mean over the others.

    None where there are not both.
    """
    home: list[CellAnswers] = []
    elsewhere: list[CellAnswers] = []
    for table in tables:
        if table.matrix.at_home is not None:
            for (row, column), answers in table.answers.items():
                (home if row == column else elsewhere).append(answers)
    if not home or not elsewhere:
        return None
    return weighted_sum([*_evenly(home, 1.0), *_evenly(elsewhere, -1.0)])


def difference_of(pairs: Sequence[tuple[CellAnswers, CellAnswers]]) -> Estimate:
    """First less second of each pair, mean over the pairs."""
    own = _evenly([first for first, _ in pairs], 1.0)
    theirs = _evenly([second for _, second in pairs], -1.0)
    return weighted_sum([*own, *theirs])


def less_published(*tables: ScoreTable) -> Estimate | None:
    """Ours less the published scores, mean over the cells that have both."""
    answers, scores = [], []
    for table in tables:
        for place, own in table.answers.items():
            if place in table.published:
                answers.append(own)
                scores.append(table.published[place])
    if not answers:
        return None
    return weighted_sum(_evenly(answers, 1.0)).less(float(np.mean(scores)))


def weighted_sum(parts: Sequence[Weighted]) -> Estimate:
    """Σ weight · macro-F1 with its interval; parts with the same texts are resampled together."""
    by_texts: dict[str, list[Weighted]] = {}
    for weight, answers in parts:
        by_texts.setdefault(answers.texts, []).append((weight, answers))
    by_seed, resampled = np.zeros(1), np.zeros(1)
    for number, together in enumerate(by_texts.values()):
        scores, draws = _same_texts(together, seed=number)
        by_seed, resampled = by_seed + scores, resampled + draws  # (seed,), (resample,)
    value = float(by_seed.mean())
    margin = seed_margin(by_seed)
    return Estimate(value, widen_interval(value, interval(resampled), margin, within=_range(parts)))


def _same_texts(parts: Sequence[Weighted], *, seed: int) -> tuple[Floats, Floats]:
    """The sum over parts with the same texts: by seed, and of resampled texts.

    (seed,), and (resample,) as a mean over seeds
    """
    first = parts[0][1]
    weights = np.array([weight for weight, _ in parts])
    answers = np.vstack([one.answers for _, one in parts])
    found = find_patterns(first.gold, answers, first.n_classes)
    scores = scores_of(found).reshape(len(parts), -1)  # (part, seed)
    draws = text_bootstrap(found, seed=seed).reshape(-1, *scores.shape)  # (resample, part, seed)
    return weights @ scores, draws.mean(2) @ weights


def _range(parts: Sequence[Weighted]) -> tuple[float, float]:
    """What Σ weight · macro-F1 can be at all."""
    lowest = sum(weight for weight, _ in parts if weight < 0)
    highest = sum(weight for weight, _ in parts if weight > 0)
    return lowest, highest


def _evenly(answers: Sequence[CellAnswers], total: float) -> list[Weighted]:
    return [(total / len(answers), one) for one in answers]
