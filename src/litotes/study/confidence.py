"""How reliable the confidence of a study's models is: its calibration error before and after
calibration, and how many mistakes the models would save by leaving the texts they are least sure
of to someone else.

A run keeps the calibrated probability of the label it gave. With two classes the uncalibrated one
follows from it exactly:

    p₁ = P(class 1)
    logit(p₁) · T = the logit before it was divided by the temperature T
    label before = [p₁' ≥ ½]

A calibration error has no honest interval (chance alone makes it larger, resampling even more so),
but its bins have one each, and so has the excess, mean confidence less the share right: how much
too confident the models are.

The area under the risk-coverage curve (`evaluation/reliability.py`) is that of every row's models,
on all texts of its table and on each column, mean over seeds. Its bootstrap weighs the texts: with
weight w_i of text i, surest first,

    risk_i = Σ_{j ≤ i} w_j wrong_j / Σ_{j ≤ i} w_j          area = Σ w_i risk_i / Σ w_i
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats
from litotes.core.registry import grouped
from litotes.evaluation.reliability import Reliability, RiskCoverage, reliability, risk_coverage
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import Estimate, estimate_mean, split_draws
from litotes.study.runs import CellAnswers
from litotes.study.tables import ExperimentResults, ScoreTable

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


def check_confidence(results: ExperimentResults) -> tuple[Confidence, ...]:
    """One value per task with two classes.

    With more classes the probability of one says nothing about the others before calibration.
    """
    found = []
    for task, tables in grouped(results.tables, lambda table: table.matrix.task).items():
        parts = [own for table in tables for own in table.answers.values()]
        if all(one.n_classes == 2 for one in parts):
            found_at = np.concatenate([part.temperature for part in parts])
            before = _check(parts, [uncalibrate(part) for part in parts])
            after = _check(parts, [(part.answers, part.probability) for part in parts])
            temperatures = (float(found_at.min()), float(found_at.max()))
            found.append(Confidence(results.name, task, before, after, temperatures))
    return tuple(found)


def uncalibrate(answers: CellAnswers) -> tuple[Counts, Floats]:
    """The labels given and their probabilities as they were before calibration.

    (seed, text) each
    """
    first = np.where(answers.answers == 1, answers.probability, 1 - answers.probability)
    first = first.clip(_ROUNDED, 1 - _ROUNDED)
    logit = np.log(first / (1 - first)) * answers.temperature[:, None]  # (seed, text)
    before = 1 / (1 + np.exp(-logit))
    return (before >= 0.5).astype(np.int64), np.maximum(before, 1 - before)


def _check(parts: Sequence[CellAnswers], given: Sequence[tuple[Counts, Floats]]) -> ConfidenceCheck:
    """given: the labels and their probabilities, (seed, text) each, of every part."""
    sure, right = [], []
    sums: dict[str, Floats] = {}  # by texts: (seed, text), summed over the cells tested on them
    for part, (labels, probability) in zip(parts, given, strict=True):
        hit = labels == part.gold
        sure.append(probability.ravel())
        right.append(hit.ravel())
        sums[part.texts] = sums.get(part.texts, 0.0) + (probability - hit)
    whole = reliability(np.concatenate(sure), np.concatenate(right))
    by_seed = np.zeros(1)
    # texts are resampled for all cells and seeds together
    generator, resampled = np.random.default_rng(0), np.zeros(N_RESAMPLES)
    for one in sums.values():
        n_seeds, n_texts = one.shape
        by_seed = by_seed + one.sum(1) * n_seeds / whole.n  # (seed,)
        weights = generator.multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=N_RESAMPLES)
        resampled += weights @ one.sum(0) / whole.n
    return ConfidenceCheck(whole, estimate_mean(by_seed, interval(resampled), within=(-1.0, 1.0)))


ALL_COLUMNS = "all"


@dataclass(frozen=True)
class RiskArea:
    """The models of one row on one column. best: the smallest area that their mistakes allow;
    error: the area of an uninformative confidence. Means over seeds.
    """

    table: str
    task: str
    row: str
    column: str
    n: int
    area: Estimate
    best: float
    error: float


def find_risks(tables: Sequence[ScoreTable]) -> tuple[RiskArea, ...]:
    """Those of all tables of an experiment."""
    return tuple(
        one for table in tables for row in table.matrix.rows for one in _row_risks(table, row)
    )


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


def _row_risks(table: ScoreTable, row: str) -> Iterator[RiskArea]:
    names = [column for column in table.matrix.columns if (row, column) in table.answers]
    groups = {ALL_COLUMNS: names} if len(names) > 1 else {}
    for column, together in (groups | {name: [name] for name in names}).items():
        own = [table.answers[row, name] for name in together]
        sure = np.concatenate([cell.probability for cell in own], axis=1)  # (seed, text)
        right = np.concatenate([cell.answers == cell.gold for cell in own], axis=1)
        curves = [risk_coverage(*one) for one in zip(sure, right, strict=True)]
        areas = np.array([curve.area for curve in curves])
        yield RiskArea(
            table=table.title,
            task=table.matrix.task,
            row=row,
            column=column,
            n=sure.shape[1],
            area=estimate_mean(areas, interval(_resample_area(sure, right))),
            best=float(np.mean([curve.best_area for curve in curves])),
            error=float(np.mean([curve.error for curve in curves])),
        )


def _resample_area(sure: Floats, right: NDArray[np.bool_]) -> Floats:
    """The mean area over seeds, on resampled texts. sure, right (seed, text) → (resample,)"""
    generator = np.random.default_rng(0)
    n = sure.shape[1]
    # answers of the same probability in any order
    orders = [np.lexsort((generator.random(n), -one)) for one in sure]  # (text,) each
    drawn = []
    for size in split_draws(N_RESAMPLES, n):
        weights = generator.multinomial(n, np.full(n, 1 / n), size=size)  # (resample, text)
        area = np.zeros(size)
        for order, hit in zip(orders, right, strict=True):
            surest_first = weights[:, order]
            answered = surest_first.cumsum(1)
            mistakes = (surest_first * ~hit[order]).cumsum(1)
            risk = mistakes / np.maximum(answered, 1)  # before the first text there is none
            area += (surest_first * risk).sum(1) / answered[:, -1] / len(orders)
        drawn.append(area)
    return np.concatenate(drawn)
