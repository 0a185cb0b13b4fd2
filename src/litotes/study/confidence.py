"""How reliable the confidence of a study's models is, before and after calibration.

A run keeps the calibrated probability of the label it gave. With two classes the uncalibrated one
follows from it exactly:

    p₁ = P(class 1)
    logit(p₁) · T = the logit before it was divided by the temperature T
    label before = [p₁' ≥ ½]

A calibration error has no honest interval (chance alone makes it larger, resampling even more so),
but its bins have one each, and so has the excess, mean confidence less the share right: how much
too confident the models are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats
from litotes.evaluation.reliability import Reliability, RiskCoverage, reliability, risk_coverage
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import seed_margin, split_draws, widen_interval
from litotes.study.runs import CellAnswers
from litotes.study.tables import Estimate, ExperimentResults, ScoreTable

_ROUNDED = 5e-7  # probabilities were rounded to six digits: nearer to 0 or 1 nothing is known


@dataclass(frozen=True)
class ConfidenceCheck:
    """The reliability of all answers, and the excess of confidence over the share right."""

    reliability: Reliability
    excess: Estimate


@dataclass(frozen=True)
class Confidence:
    """All answers of an experiment's models to one task, over cells and seeds.

    temperatures: the smallest and the largest.
    """

    experiment: str
    task: str
    before: ConfidenceCheck
    after: ConfidenceCheck
    temperatures: tuple[float, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": list(confidence_sentences(self))}


def check_confidence(results: ExperimentResults) -> tuple[Confidence, ...]:
    """One value per task with two classes.

    With more classes the probability of one says nothing about the others before calibration.
    """
    by_task: dict[str, list[CellAnswers]] = {}
    for table in results.tables:
        by_task.setdefault(table.matrix.task, []).extend(table.answers.values())
    found = []
    for task, answers in by_task.items():
        if all(one.n_classes == 2 for one in answers):
            found.append(_confidence(results.name, task, answers))
    return tuple(found)


def confidence_sentences(one: Confidence) -> Iterator[str]:
    """Sure and right, before and after."""
    before, after = one.before, one.after
    yield (
        f"{one.experiment}, {one.task}: calibration error {before.reliability.ece:.3f} before"
        f" calibration, {after.reliability.ece:.3f} after; confidence exceeds the share right by"
        f" {before.excess.signed()} before, by {after.excess.signed()} after."
    )
    low, high = one.temperatures
    if low == high == 1.0:
        yield "No temperature was fitted."
    elif after.reliability.ece > before.reliability.ece:
        yield (
            "Calibration made it worse here: temperatures were fitted on held-out texts of what"
            f" was trained on, and these ({low:.2f} to {high:.2f}) do not travel."
        )


def uncalibrate(answers: CellAnswers) -> tuple[Counts, Floats]:
    """The labels given and their probabilities as they were before calibration.

    (seed, text) each
    """
    first = np.where(answers.answers == 1, answers.probability, 1 - answers.probability)
    first = first.clip(_ROUNDED, 1 - _ROUNDED)
    logit = np.log(first / (1 - first)) * answers.temperature[:, None]  # (seed, text)
    before = 1 / (1 + np.exp(-logit))
    return (before >= 0.5).astype(np.int64), np.maximum(before, 1 - before)


def _confidence(experiment: str, task: str, parts: Sequence[CellAnswers]) -> Confidence:
    temperatures = np.concatenate([part.temperature for part in parts])
    return Confidence(
        experiment,
        task,
        before=_check(parts, [uncalibrate(part) for part in parts]),
        after=_check(parts, [(part.answers, part.probability) for part in parts]),
        temperatures=(float(temperatures.min()), float(temperatures.max())),
    )


def _check(parts: Sequence[CellAnswers], given: Sequence[tuple[Counts, Floats]]) -> ConfidenceCheck:
    """given: the labels and their probabilities, (seed, text) each, of every part."""
    sure, right = [], []
    excess: dict[str, Floats] = {}  # by texts: (seed, text), summed over the cells tested on them
    for part, (labels, probability) in zip(parts, given, strict=True):
        hit = labels == part.gold
        sure.append(probability.ravel())
        right.append(hit.ravel())
        excess[part.texts] = excess.get(part.texts, 0.0) + (probability - hit)
    whole = reliability(np.concatenate(sure), np.concatenate(right))
    return ConfidenceCheck(whole, _mean_excess(list(excess.values()), whole.n))


def _mean_excess(sums: Sequence[Floats], n: int) -> Estimate:
    """Mean excess of n answers, with its interval over texts and over seeds.

    Texts are resampled for all cells and seeds together. sums: (seed, text) each
    """
    by_seed = sum(one.sum(1) for one in sums) * len(sums[0]) / n  # (seed,)
    value = float(np.mean(by_seed))
    margin = seed_margin(np.asarray(by_seed))
    over_texts = interval(_resample_excess(sums, n))
    return Estimate(value, widen_interval(value, over_texts, margin, within=(-1.0, 1.0)))


def _resample_excess(sums: Sequence[Floats], n: int) -> Floats:
    """(resample,)"""
    generator = np.random.default_rng(0)
    drawn = np.zeros(N_RESAMPLES)
    for one in sums:
        n_texts = one.shape[1]
        shares = np.full(n_texts, 1 / n_texts)
        drawn += generator.multinomial(n_texts, shares, size=N_RESAMPLES) @ one.sum(0) / n
    return drawn


# How many mistakes a study's models would save by leaving the texts they are least sure of.
#
# The area under the risk-coverage curve (`evaluation/risk_coverage.py`) of every row's models, on
# all
# texts of its table and on each column: the mean over seeds, with an interval over texts and
# seeds.
# A bootstrap weighs the texts: with weight w_i of text i, surest first,
#
#     risk_i = Σ_{j ≤ i} w_j wrong_j / Σ_{j ≤ i} w_j          area = Σ w_i risk_i / Σ w_i

ALL_COLUMNS = "all"


@dataclass(frozen=True)
class RiskArea:
    """The models of one row on one column. best: the smallest area that their mistakes allow;
    error: the area of a confidence that says nothing. Means over seeds.
    """

    table: str
    task: str
    row: str
    column: str
    n: int
    area: Estimate
    best: float
    error: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def find_risks(tables: Sequence[ScoreTable]) -> tuple[RiskArea, ...]:
    """Those of all tables of an experiment."""
    found: list[RiskArea] = []
    for table in tables:
        for row in table.matrix.rows:
            cells = {}
            for column in table.matrix.columns:
                if (row, column) in table.answers:
                    cells[column] = table.answers[row, column]
            found += _row_risks(table, row, cells)
    return tuple(found)


def pooled_curves(tables: Sequence[ScoreTable]) -> dict[str, dict[str, RiskCoverage]]:
    """By task, then by table: one curve over all its rows, columns and seeds."""
    found: dict[str, dict[str, RiskCoverage]] = {}
    for table in tables:
        cells = list(table.answers.values())
        sure = np.concatenate([cell.probability.ravel() for cell in cells])
        right = np.concatenate([(cell.answers == cell.gold).ravel() for cell in cells])
        name = table.title_among(tables)
        found.setdefault(table.matrix.task, {})[name] = risk_coverage(sure, right)
    return found


def _row_risks(table: ScoreTable, row: str, cells: Mapping[str, CellAnswers]) -> Iterator[RiskArea]:
    parts = dict(cells)
    names = list(parts)
    groups = {ALL_COLUMNS: names} if len(names) > 1 else {}
    groups |= {name: [name] for name in names}
    for column, together in groups.items():
        own = [parts[name] for name in together]
        sure = np.concatenate([cell.probability for cell in own], axis=1)  # (seed, text)
        right = np.concatenate([cell.answers == cell.gold for cell in own], axis=1)
        curves = [risk_coverage(*one) for one in zip(sure, right, strict=True)]
        yield RiskArea(
            table=table.title,
            task=table.matrix.task,
            row=row,
            column=column,
            n=sure.shape[1],
            area=_estimate(np.array([curve.area for curve in curves]), sure, right),
            best=float(np.mean([curve.best_area for curve in curves])),
            error=float(np.mean([curve.error for curve in curves])),
        )


def _estimate(areas: Floats, sure: Floats, right: NDArray[np.bool_]) -> Estimate:
    """The mean over seeds with its interval. areas (seed,); sure, right (seed, text)"""
    value = float(areas.mean())
    over_texts = interval(_resample(sure, right))
    return Estimate(value, widen_interval(value, over_texts, seed_margin(areas), within=(0.0, 1.0)))


def _resample(sure: Floats, right: NDArray[np.bool_]) -> Floats:
    """The mean area over seeds, on resampled texts. (resample,)"""
    generator = np.random.default_rng(0)
    n = sure.shape[1]
    # answers of the same probability in any order
    orders = [np.lexsort((generator.random(n), -one)) for one in sure]  # (text,) each
    drawn = []
    for size in split_draws(N_RESAMPLES, n):
        weights = generator.multinomial(n, np.full(n, 1 / n), size=size)  # (resample, text)
        area = np.zeros(size)
        for order, hit in zip(orders, right, strict=True):
            area += _weighted_area(weights[:, order], ~hit[order]) / len(orders)
        drawn.append(area)
    return np.concatenate(drawn)


def _weighted_area(weights: NDArray[np.int64], wrong: NDArray[np.bool_]) -> Floats:
    """Texts surest first. (resample, text), (text,) → (resample,)"""
    mistakes = (weights * wrong).cumsum(1)
    answered = weights.cumsum(1)
    risk = mistakes / np.maximum(answered, 1)  # before the first text there is none
    return np.asarray((weights * risk).sum(1) / answered[:, -1])
