"""Does 80 % sure mean right 80 times in 100?

    ECE = Σ over bins of n_bin / n · |share right in the bin − mean confidence in the bin|

(Guo et al. 2017, arXiv 1706.04599, §2).

Confidence is the probability of the label that was given. ECE depends on the bins, so it is given
for 10 equally wide ones and for 10 that hold equally many texts each; and chance alone makes it
larger than 0 when a bin holds few texts, hence every bin's interval. The Brier score, mean of
(confidence − right)², needs no bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.figures import BAR, GAP, INK, add_legend, hide_frame, new_figure
from litotes.core.numbers import Counts, Floats
from litotes.evaluation.scores import Bools, Interval, Result
from litotes.evaluation.shares import wilson

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BINS = 10
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
    interval: Interval


@dataclass(frozen=True, repr=False)
class Reliability(Result):
    """The reliability of confidence. `bins` are the equally wide ones that hold any text."""

    shown = ("n", "accuracy", "confidence", "ece")
    n: int
    accuracy: float
    confidence: float
    ece: float
    ece_equal_mass: float
    brier: float
    bins: tuple[Bin, ...]


def reliability(confidence: Sequence[float] | Floats, right: Sequence[bool] | Bools) -> Reliability:
    """Measures reliability from each given label's probability, and whether it was right.

    confidence (text,), right (text,)
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    by_width = _by_width(sure)
    # What many texts share (a probability of 1, say) is not torn apart, so the order of the texts
    # does not matter.
    by_mass = np.searchsorted(np.quantile(sure, np.arange(1, N_BINS) / N_BINS), sure, side="right")
    bins = []
    for number in np.unique(by_width).tolist():
        inside = by_width == number
        n, mean, share = int(inside.sum()), float(sure[inside].mean()), float(hit[inside].mean())
        low, high = number / N_BINS, (number + 1) / N_BINS
        bins.append(Bin(low, high, n, mean, share, wilson(share, n)))
    return Reliability(
        n=len(sure),
        accuracy=float(hit.mean()),
        confidence=float(sure.mean()),
        ece=_error(sure, hit, by_width),
        ece_equal_mass=_error(sure, hit, by_mass),
        brier=float(((sure - hit) ** 2).mean()),
        bins=tuple(bins),
    )


def ece_by_chance(confidence: Sequence[float] | Floats, *, seed: int = 0) -> float:
    """The mean ECE of a perfectly calibrated model: each answer is right with the probability it
    was given, drawn many times. confidence (text,)
    """
    sure = np.asarray(confidence, dtype=np.float64)
    by_width = _by_width(sure)
    draws = np.random.default_rng(seed).random((_N_DRAWS, len(sure)))  # (draw, text)
    return float(np.mean([_error(sure, hit, by_width) for hit in (draws < sure).astype(float)]))


def _by_width(sure: Floats) -> Counts:
    """The number of each text's bin, of those that are equally wide. (text,)"""
    return np.minimum((sure * N_BINS).astype(np.int64), N_BINS - 1)


def _error(sure: Floats, hit: Floats, place: Counts) -> float:
    """ECE with each text in its place; n_bin cancels. (text,) each"""
    return float(np.abs(np.bincount(place, weights=hit - sure)).sum() / len(sure))


# How many mistakes remain when a model may leave the texts it is least sure of to somebody else?
#
#     risk(k)   the share of wrong labels among the k texts with the highest confidence
#     area      mean over k = 1 … n of risk(k)
#
# (Geifman & El-Yaniv 2017, arXiv 1705.08500; the area as in Geifman, Uziel & El-Yaniv 2019, arXiv
# 1805.08206.) Confidence is the probability of the label that was given. Texts of the same
# confidence come in no order: their mistakes are spread evenly over their places, which is the mean
# over all orders. The area of a confidence that says nothing is the error rate; the smallest that
# these mistakes allow is `best_area`, with all of them at the end.

N_POINTS = 100
"""Of a curve that is written and drawn; the area is that of all texts."""


@dataclass(frozen=True, repr=False)
class RiskCoverage(Result):
    """coverage (point,): the share of texts answered; risk (point,): the error rate among them."""

    shown = ("n", "area", "best_area", "error")
    n: int
    area: float
    best_area: float
    error: float
    coverage: tuple[float, ...]
    risk: tuple[float, ...]


def risk_coverage(
    confidence: Sequence[float] | Floats, right: Sequence[bool] | Bools
) -> RiskCoverage:
    """Computes risk and coverage from each given label's probability, and whether it was right.

    confidence (text,), right (text,)
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.bool_)
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


def _risks(sure: Floats, hit: Bools) -> Floats:
    """(text,), (text,) → (text,)"""
    _, block, size = np.unique(-sure, return_inverse=True, return_counts=True)
    wrong = np.bincount(block, weights=~hit)  # (block,): from the highest confidence on
    spread = np.repeat(wrong / size, size)  # (text,): mistakes at each place
    return np.asarray(spread.cumsum() / np.arange(1, len(sure) + 1))


# Reliability diagrams: the share right against the confidence, with the number of texts below.

_BAR: dict[str, Any] = {"color": BAR, "edgecolor": INK, "linewidth": 0.6}
_COUNT: dict[str, Any] = {**_BAR, "color": "#BBBBBB"}
_HATCHED: dict[str, Any] = {"fill": False, "edgecolor": GAP, "hatch": "////", "linewidth": 0.6}


def draw_reliability(results: Mapping[str, Reliability]) -> Figure:
    """Draws the diagrams side by side, each under its name: {"before": …, "after": …}.

    Bars for the share right, hatched up (too sure) or down (too unsure) to the mean confidence;
    below them how many texts each bin holds, since a bar of few texts means little.
    """
    picture = new_figure(4.4 * len(results), 4.8)
    axes = picture.subplots(2, len(results), squeeze=False, sharex=True, height_ratios=(4, 1))
    for (name, result), ax, below in zip(results.items(), *axes, strict=True):
        bins = result.bins
        middles = [(one.low + one.high) / 2 for one in bins]
        right = np.array([one.right for one in bins])
        gaps = [one.confidence for one in bins] - right
        ax.bar(middles, right, 1 / N_BINS, **_BAR, label="right")
        ax.bar(middles, gaps, 1 / N_BINS, right, **_HATCHED, label="gap to confidence")
        ends = zip(*(one.interval for one in bins), strict=True)
        ax.vlines(middles, *ends, color=INK, linewidth=1.2, label="95 % interval")
        counts = below.bar(middles, [one.n for one in bins], 1 / N_BINS, **_COUNT)
        below.bar_label(counts, fontsize=7)
        ax.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="perfect calibration")
        title = f"{name}: ECE {result.ece:.3f} (equal mass {result.ece_equal_mass:.3f})"
        ax.set_title(title, fontsize=11, parse_math=False)
        most = max(one.n for one in bins)
        ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="share right")
        # room for the numbers
        below.set(ylim=(0, 1.35 * most), yticks=[], xlabel="confidence", ylabel="texts")
        hide_frame(ax)
        hide_frame(below)
    add_legend(picture, axes[0], n_columns=4)
    return picture


# Risk-coverage curves: the error rate among the texts that a model is surest of.


def draw_risk_coverage(results: Mapping[str, RiskCoverage]) -> Figure:
    """Draws the curves, each with its area; what no order of the texts would give is dotted."""
    picture = new_figure(6.4, 3.8)
    ax = picture.subplots()
    top = 0.01
    styles = cycle(product(("-", "--", "-."), (INK, BAR, GAP)))
    for (name, one), (line, colour) in zip(results.items(), styles, strict=False):
        label = f"{name}: {one.area:.3f} (best {one.best_area:.3f}, no order {one.error:.3f})"
        ax.plot(one.coverage, one.risk, line, color=colour, linewidth=1.4, label=label)
        ax.axhline(one.error, color=colour, linestyle=":", linewidth=0.8)
        # but for the first few texts, of which one mistake is a rate of 1
        top = max(top, *one.risk[len(one.risk) // 20 :])
    across = "share of texts answered, the surest first"
    # room for the legend
    ax.set(xlim=(0, 1), ylim=(0, 1.3 * top), xlabel=across, ylabel="error rate among them")
    hide_frame(ax)
    legend = ax.legend(frameon=False, fontsize=8, title="area", title_fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return picture
