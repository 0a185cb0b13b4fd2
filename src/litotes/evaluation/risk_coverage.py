"""How many mistakes remain when a model may leave the texts it is least sure of to somebody else?

    risk(k)   the share of wrong labels among the k texts with the highest confidence
    area      mean over k = 1 … n of risk(k)

(Geifman & El-Yaniv 2017, arXiv 1705.08500; the area as in Geifman, Uziel & El-Yaniv 2019, arXiv
1805.08206.) Confidence is the probability of the label that was given. Texts of the same confidence
come in no order: their mistakes are spread evenly over their places, which is the mean over all
orders. The area of a confidence that says nothing is the error rate; the smallest that these
mistakes allow is `best_area`, with all of them at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Floats

N_POINTS = 100
"""Of a curve that is written and drawn; the area is that of all texts."""


@dataclass(frozen=True)
class RiskCoverage:
    """coverage (point,): the share of texts answered; risk (point,): the error rate among them."""

    n: int
    area: float
    best_area: float
    error: float
    coverage: tuple[float, ...]
    risk: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def risk_coverage(
    confidence: Sequence[float] | Floats, right: Sequence[bool] | NDArray[np.bool_]
) -> RiskCoverage:
    """From the probability of the label given to each text, and whether it was right.

    confidence (text,), right (text,)
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.bool_)
    if not len(sure):
        raise UserError(
            "There are no texts to measure the risk on. Choose a split or a cell that has some."
        )
    if sure.shape != hit.shape:
        raise ValueError(f"{len(sure)} probabilities for {len(hit)} answers")
    n = len(sure)
    risk = _risks(sure, hit)  # (text,): at k = 1 … n
    best = _risks(hit.astype(np.float64), hit)
    places = np.unique(np.linspace(1, n, min(n, N_POINTS)).round().astype(np.int64)) - 1
    return RiskCoverage(
        n=n,
        area=float(risk.mean()),
        best_area=float(best.mean()),
        error=float(1 - hit.mean()),
        coverage=tuple(((places + 1) / n).tolist()),
        risk=tuple(risk[places].tolist()),
    )


def _risks(sure: Floats, hit: NDArray[np.bool_]) -> Floats:
    """(text,), (text,) → (text,)"""
    _, block, size = np.unique(-sure, return_inverse=True, return_counts=True)
    wrong = np.bincount(block, weights=~hit)  # (block,): from the highest confidence on
    spread = np.repeat(wrong / size, size)  # (text,): mistakes at each place
    return np.asarray(spread.cumsum() / np.arange(1, len(sure) + 1))
