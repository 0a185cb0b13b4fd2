"""Does 80 % sure mean right 80 times in 100?

    ECE = Σ over bins of n_bin / n · |share right in the bin − mean confidence in the bin|

(Guo et al. 2017, arXiv 1706.04599, §2).

Confidence is the probability of the label that was given. ECE depends on the bins, so it is given
for 10 equally wide ones and for 10 that hold equally many texts each; and chance alone makes it
larger than 0 when a bin holds few texts, hence every bin's interval. The Brier score, mean of
(confidence − right)², needs no bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats

N_BINS = 10
_Z = 1.959964  # 97.5 % of the normal distribution lie below
_N_DRAWS = 200


@dataclass(frozen=True)
class Bin:
    """Texts of about the same confidence: the mean confidence, the share right and its interval.

    The interval is Wilson's of 95 % (1927).
    """

    low: float
    high: float
    n: int
    confidence: float
    right: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Reliability:
    """How reliable confidence is. `bins` are the equally wide ones that hold any text."""

    n: int
    accuracy: float
    confidence: float
    ece: float
    ece_equal_mass: float
    brier: float
    bins: tuple[Bin, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def reliability(
    confidence: Sequence[float] | Floats, right: Sequence[bool] | NDArray[np.bool_]
) -> Reliability:
    """From the probability of the label given to each text, and whether it was right.

    confidence (text,), right (text,)
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    _check(sure, hit)
    by_width = np.minimum((sure * N_BINS).astype(np.int64), N_BINS - 1)  # (text,): its bin
    # What many texts share (a probability of 1, say) is not torn apart, so the order of the texts
    # does not matter.
    by_mass = np.searchsorted(np.quantile(sure, np.arange(1, N_BINS) / N_BINS), sure, side="right")
    return Reliability(
        n=len(sure),
        accuracy=float(hit.mean()),
        confidence=float(sure.mean()),
        ece=_error(sure, hit, by_width),
        ece_equal_mass=_error(sure, hit, by_mass),
        brier=float(((sure - hit) ** 2).mean()),
        bins=tuple(_bins(sure, hit, by_width)),
    )


def ece_by_chance(confidence: Sequence[float] | Floats, *, seed: int = 0) -> float:
    """The mean ECE of a perfectly calibrated model: each answer is right with the probability it
    was given, drawn many times. confidence (text,)
    """
    sure = np.asarray(confidence, dtype=np.float64)
    by_width = np.minimum((sure * N_BINS).astype(np.int64), N_BINS - 1)
    draws = np.random.default_rng(seed).random((_N_DRAWS, len(sure)))  # (draw, text)
    return float(np.mean([_error(sure, hit, by_width) for hit in (draws < sure).astype(float)]))


def _check(sure: Floats, hit: Floats) -> None:
    if not len(sure):
        raise UserError(
            "There are no texts to compare confidence with. Choose a split or a cell that has some."
        )
    if sure.shape != hit.shape or not ((sure >= 0) & (sure <= 1)).all():
        raise ValueError(f"confidence must be probabilities, one for each of {len(hit)} answers")


def _error(sure: Floats, hit: Floats, place: Counts) -> float:
    """ECE with each text in its place; n_bin cancels. (text,) each"""
    return float(np.abs(np.bincount(place, weights=hit - sure)).sum() / len(sure))


def _bins(sure: Floats, hit: Floats, place: Counts) -> Iterator[Bin]:
    """The bins that hold any text. (text,) each"""
    for number in np.unique(place).tolist():
        inside = place == number
        right = float(hit[inside].mean())
        yield Bin(
            low=number / N_BINS,
            high=(number + 1) / N_BINS,
            n=int(inside.sum()),
            confidence=float(sure[inside].mean()),
            right=right,
            interval=wilson(right, int(inside.sum())),
        )


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of n (Wilson 1927)."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * (share * (1 - share) / n + _Z**2 / (4 * n**2)) ** 0.5 / (1 + _Z**2 / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)
