"""How reliable the confidence of a study's models is: its calibration error before and after
calibration, and how many mistakes the models would save by leaving the texts they are least sure
of to someone else.

A run keeps the calibrated probability of the label it gave. With two classes the uncalibrated one
follows from it exactly:

    p₁ = P(class 1)
    logit(p₁) · T = the logit before it was divided by the temperature T
    label before = [p₁' ≥ ½]

A calibration error has no honest interval (chance alone makes it larger, resampling even more so),
but its bins have one each, and so has the excess, mean confidence minus the share right: how much
too confident the models are.

The area under the risk-coverage curve (`evaluation/reliability.py`) is that of every row's models,
on all texts of its table and on each column, mean over seeds. Its bootstrap weighs the texts: with
weight w_i of text i, surest first,

    risk_i = Σ_{j ≤ i} w_j wrong_j / Σ_{j ≤ i} w_j          area = Σ w_i risk_i / Σ w_i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats
from litotes.core.pages import render_paragraphs
from litotes.core.registry import grouped
from litotes.evaluation.reliability import Reliability, RiskCoverage, reliability, risk_coverage
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import Estimate, draw_texts, estimate_mean
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
    derived: ClassVar = ("words",)

    @property
    def words(self) -> tuple[str, ...]:
        return render_paragraphs("study/words.txt", "calibration", one=self)


def check_confidence(results: ExperimentResults) -> tuple[Confidence, ...]:
    """Checks confidence once per task with two classes.

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
    hits = [labels == part.gold for part, (labels, _) in zip(parts, given, strict=True)]
    sure = np.concatenate([probability.ravel() for _, probability in given])
    whole = reliability(sure, np.concatenate([hit.ravel() for hit in hits]))
    sums: dict[str, Floats] = {}  # by texts: (seed, text), summed over the cells tested on them
    for part, hit, (_, probability) in zip(parts, hits, given, strict=True):
        sums[part.texts] = sums.get(part.texts, 0.0) + (probability - hit)
    by_seed = sum(len(one) * one.sum(1) for one in sums.values()) / whole.n  # (seed,)
    # texts are resampled for all cells and seeds together
    generator, resampled = np.random.default_rng(0), np.zeros(N_RESAMPLES)
    for one in sums.values():
        drawn = [times @ one.sum(0) for times in draw_texts(one.shape[1], generator)]
        resampled += np.concatenate(drawn) / whole.n
    excess = estimate_mean(np.asarray(by_seed), interval(resampled), within=(-1.0, 1.0))
    return ConfidenceCheck(whole, excess)


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
    """Finds the risks of all tables of an experiment: every row on all columns, then on each."""
    found = []
    for table in tables:
        for row in table.matrix.rows:
            cells = {name: own for (at, name), own in table.answers.items() if at == row}
            parts = {ALL_COLUMNS: list(cells.values())} if len(cells) > 1 else {}
            parts |= {name: [cells[name]] for name in table.matrix.columns if name in cells}
            found += [
                _risk((table.title, table.matrix.task, row, name), own)
                for name, own in parts.items()
            ]
    return tuple(found)


def pooled_curves(tables: Sequence[ScoreTable]) -> dict[str, dict[str, RiskCoverage]]:
    """Computes by task, then by table, one curve over all its rows, columns and seeds."""
    found: dict[str, dict[str, RiskCoverage]] = {}
    for table in tables:
        cells = list(table.answers.values())
        sure = np.concatenate([cell.probability.ravel() for cell in cells])
        right = np.concatenate([(cell.answers == cell.gold).ravel() for cell in cells])
        name = table.title_among(tables)
        found.setdefault(table.matrix.task, {})[name] = risk_coverage(sure, right)
    return found


def _risk(place: tuple[str, str, str, str], cells: Sequence[CellAnswers]) -> RiskArea:
    """place: table, task, row and column."""
    sure = np.concatenate([cell.probability for cell in cells], axis=1)  # (seed, text)
    right = np.concatenate([cell.answers == cell.gold for cell in cells], axis=1)
    curves = [risk_coverage(*one) for one in zip(sure, right, strict=True)]
    numbers = np.array([(one.area, one.best_area, one.error) for one in curves])
    over_texts = interval(_resample_area(sure, right))
    _, best, error = numbers.mean(0).tolist()
    return RiskArea(*place, sure.shape[1], estimate_mean(numbers[:, 0], over_texts), best, error)


def _resample_area(sure: Floats, right: NDArray[np.bool_]) -> Floats:
    """The mean area over seeds, on resampled texts. sure, right (seed, text) → (resample,)"""
    generator = np.random.default_rng(0)
    n = sure.shape[1]
    # answers of the same probability in any order
    orders = [np.lexsort((generator.random(n), -one)) for one in sure]  # (text,) each
    drawn = []
    for times in draw_texts(n, generator):
        areas = []
        for order, hit in zip(orders, right, strict=True):
            surest_first = times[:, order]
            answered = surest_first.cumsum(1)
            mistakes = (surest_first * ~hit[order]).cumsum(1)
            risk = mistakes / np.maximum(answered, 1)  # before the first text there is none
            areas.append((surest_first * risk).sum(1) / n)
        drawn.append(np.mean(areas, axis=0))
    return np.concatenate(drawn)
