"""Does 80 % sure mean right 80 times in 100?

    ECE = Σ over bins of n_bin / n · |share right in the bin − mean confidence in the bin|

(Guo et al. 2017, arXiv 1706.04599, §2).

Confidence is the probability of the label that was given. ECE depends on the bins, so it is given
for 10 equally wide ones and for 10 that hold equally many texts each; and chance alone makes it
larger than 0 when a bin holds few texts, hence every bin's interval. The Brier score, mean of
(confidence − right)², needs no bins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.figures import BAR, GAP, INK
from litotes.core.numbers import Counts, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


# How many mistakes remain when a model may leave the texts it is least sure of to somebody else?
#
#     risk(k)   the share of wrong labels among the k texts with the highest confidence
#     area      mean over k = 1 … n of risk(k)
#
# (Geifman & El-Yaniv 2017, arXiv 1705.08500; the area as in Geifman, Uziel & El-Yaniv 2019, arXiv
# 1805.08206.) Confidence is the probability of the label that was given. Texts of the same
# confidence
# come in no order: their mistakes are spread evenly over their places, which is the mean over all
# orders. The area of a confidence that says nothing is the error rate; the smallest that these
# mistakes allow is `best_area`, with all of them at the end.

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


# Reliability diagrams: the share right against the confidence, with the number of texts below.

_BAR: dict[str, Any] = {"color": BAR, "edgecolor": INK, "linewidth": 0.6}
_HATCHED: dict[str, Any] = {"fill": False, "edgecolor": GAP, "hatch": "////", "linewidth": 0.6}


def _draw_diagram(result: Reliability, ax: Axes, *, title: str) -> None:
    """Draws the diagram into given axes.

    Bars for the share right, hatched up (too sure) or down (too unsure) to the mean confidence.
    """
    for one in result.bins:
        _draw_bin(one, ax)
    ax.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="as sure as right")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_ylabel("share right")
    errors = f"ECE {result.ece:.3f} (equal mass {result.ece_equal_mass:.3f})"
    ax.set_title(f"{title}: {errors}", fontsize=11, parse_math=False)
    _hide_frame(ax)


def _draw_bin(one: Bin, ax: Axes) -> None:
    x, width, gap = (one.low + one.high) / 2, one.high - one.low, one.confidence - one.right
    ax.bar(x, one.right, width, **_BAR, label="right")
    ax.bar(x, gap, width, one.right, **_HATCHED, label="gap to confidence")
    ax.plot([x, x], one.interval, color=INK, linewidth=1.2, label="95 % interval")


def draw_counts(result: Reliability, ax: Axes) -> None:
    """Draws how many texts each bin holds: a bar that few texts stand behind means little."""
    for one in result.bins:
        x = (one.low + one.high) / 2
        ax.bar(x, one.n, width=one.high - one.low, color="#BBBBBB", edgecolor=INK, linewidth=0.6)
        ax.text(x, one.n, str(one.n), ha="center", va="bottom", fontsize=7)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.35 * max(one.n for one in result.bins))  # room for the numbers
    ax.set_yticks([])
    ax.set_xlabel("confidence")
    ax.set_ylabel("texts")
    _hide_frame(ax)


def draw_reliability(results: Mapping[str, Reliability]) -> Figure:
    """The diagrams side by side, each under its name: {"before": …, "after": …}."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    picture = Figure(figsize=(4.4 * len(results), 4.8), layout="constrained")
    axes = picture.subplots(2, len(results), squeeze=False, sharex=True, height_ratios=(4, 1))
    for (name, result), ax, counts_ax in zip(results.items(), *axes, strict=True):
        _draw_diagram(result, ax, title=name)
        draw_counts(result, counts_ax)
    _add_legend(picture, axes[0][0])
    return picture


def _add_legend(picture: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))  # each bar brings its label; once is enough
    style: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 8}
    picture.legend(entries.values(), entries.keys(), ncols=len(entries), **style)


def _hide_frame(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


# Risk-coverage curves: the error rate among the texts that a model is surest of.


def _draw_curve(result: RiskCoverage, ax: Axes, *, title: str) -> None:
    """Draws one curve, with the error rate of all texts as a line."""
    ax.plot(result.coverage, result.risk, color=INK, linewidth=1.4)
    ax.fill_between(result.coverage, result.risk, color=BAR, alpha=0.5, linewidth=0)
    ax.axhline(result.error, color=GAP, linestyle="--", linewidth=1)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.1 * max(*result.risk, result.error, 0.01))
    ax.set_xlabel("share of texts answered, the surest first")
    ax.set_ylabel("error rate among them")
    areas = f"area {result.area:.3f} (best {result.best_area:.3f}, no order {result.error:.3f})"
    ax.set_title(f"{title}: {areas}", fontsize=10, parse_math=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def overlay_risk_coverage(results: Mapping[str, RiskCoverage]) -> Figure:
    """Several curves in one picture, each with its area."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    picture = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = picture.subplots()
    styles = itertools.cycle(itertools.product(("-", "--", ":", "-."), (INK, BAR, GAP)))
    for (name, result), (line, colour) in zip(results.items(), styles, strict=False):
        label = f"{name}: {result.area:.3f} (best {result.best_area:.3f})"
        ax.plot(result.coverage, result.risk, line, color=colour, linewidth=1.4, label=label)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.3 * max(map(_highest, results.values())))  # room for the legend
    ax.set_xlabel("share of texts answered, the surest first")
    ax.set_ylabel("error rate among them")
    legend = ax.legend(frameon=False, fontsize=8, title="area", title_fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return picture


def _highest(result: RiskCoverage) -> float:
    """The highest risk but for the first few texts, of which one mistake is a rate of 1."""
    known = [risk for share, risk in zip(result.coverage, result.risk, strict=True) if share > 0.05]
    return max(known, default=1.0) or 0.01


def draw_risk_coverage(results: Mapping[str, RiskCoverage]) -> Figure:
    """The curves side by side, each under its name."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    picture = Figure(figsize=(4.8 * len(results), 3.6), layout="constrained")
    axes = picture.subplots(1, len(results), squeeze=False)
    for (name, result), ax in zip(results.items(), axes[0], strict=True):
        _draw_curve(result, ax, title=name)
    return picture
