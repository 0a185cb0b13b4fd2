"""How many mistakes a study's models would save by leaving the texts they are least sure of.

The area under the risk-coverage curve (`evaluation/risk_coverage.py`) of every row's models, on all
texts of its table and on each column: the mean over seeds, with an interval over texts and seeds.
A bootstrap weighs the texts: with weight w_i of text i, surest first,

    risk_i = Σ_{j ≤ i} w_j wrong_j / Σ_{j ≤ i} w_j          area = Σ w_i risk_i / Σ w_i
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats
from litotes.evaluation.reliability import RiskCoverage, risk_coverage
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import seed_margin, split_draws, widen_interval
from litotes.study.overall import Estimate
from litotes.study.run_files import CellAnswers
from litotes.study.tables import ScoreTable

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
