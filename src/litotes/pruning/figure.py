"""The frontier of a pruning: what each setting loses against what it saves, counted in operations
and measured in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from litotes.core.errors import UserError
from litotes.core.figures import GAP, INK, BarStyle, draw_bars, shift_points
from litotes.pruning.frontier import Loss, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAVINGS = {
    "flops_ratio": "times fewer operations than dense",
    "speed_ratio": "times as fast as dense",
}


# from the palette of Okabe and Ito; filled and hollow as well, for print without colour
HELD_OUT = BarStyle("kept apart", "#0072B2", fill="white", shift=-7.0)
EXPECTED = BarStyle("expected", "#0072B2", fill="#0072B2", shift=0.0)
TEST = BarStyle("test", GAP, fill="white", shift=7.0)
REPORTED = BarStyle("held out", "#009E73", fill="white", shift=14.0)

SERIES = {"loss": HELD_OUT, "expected": EXPECTED, "test_loss": TEST, "reported": REPORTED}


@dataclass(frozen=True)
class Mark:
    """How a model that is not pruned is marked."""

    label: str
    shape: str
    fill: str
    size: float


MARKS = {
    "dense": Mark("dense", "D", INK, 7.0),
    "control": Mark("dense, trained on", "s", "none", 13.0),
}


def draw(
    points: Sequence[Point],
    ax: Axes,
    *,
    saving: Literal["flops_ratio", "speed_ratio"],
    budget: float,
) -> None:
    """Draws losses with their 95 % intervals against one saving: those the texts kept apart showed,
    those to be expected, by which a setting is chosen (ringed), and those on other texts.
    """
    ordered = sorted(points, key=lambda point: float(getattr(point, saving)))
    ax.axhline(0, color="#BBBBBB", linewidth=1)
    ax.axhline(budget, color=INK, linestyle="--", linewidth=1, label=f"budget, {budget:g}")
    compared = [point for point in ordered if point.kind != "dense"]
    for name, style in SERIES.items():
        told = [point for point in compared if getattr(point, name) is not None]
        if told:
            places = [float(getattr(point, saving)) for point in told]
            _bars(ax, places, [getattr(point, name) for point in told], style)
    ratios = [float(getattr(point, saving)) for point in ordered]
    for ratio, point in zip(ratios, ordered, strict=True):
        if point.kind in MARKS:
            _mark(ax, ratio, point.best_guess.points, MARKS[point.kind])
        if point.chosen:
            _ring(ax, ratio, point)
    room = 0.15 * (max(ratios) - min(ratios)) or 0.1
    ax.set_xlim(min(ratios) - room, max(ratios) + room)
    ax.set_xlabel(SAVINGS[saving])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def figure(points: Sequence[Point], *, budget: float) -> Figure:
    """The same losses against operations and against time. budget: the loss that was allowed, in
    points of macro-F1.
    """
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    if not points:
        raise UserError(
            "A frontier without settings cannot be drawn: give prune at least one target."
        )
    picture = Figure(figsize=(8.8, 4.2), layout="constrained")
    left, right = picture.subplots(1, 2, sharey=True)
    draw(points, left, saving="flops_ratio", budget=budget)
    draw(points, right, saving="speed_ratio", budget=budget)
    left.set_ylabel("loss of macro-F1, points")
    handles, labels = left.get_legend_handles_labels()
    picture.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8
    )
    return picture


def _bars(ax: Axes, ratios: Sequence[float], losses: Sequence[Loss], style: BarStyle) -> None:
    points, intervals = [loss.points for loss in losses], [loss.interval for loss in losses]
    draw_bars(ax, ratios, points, intervals, style)


def _mark(ax: Axes, ratio: float, loss: float, mark: Mark) -> None:
    """Marks a model that is not pruned."""
    (drawn,) = ax.plot([ratio], [loss], mark.shape, color=INK, label=mark.label, zorder=5)
    drawn.set(markersize=mark.size, markerfacecolor=mark.fill, markeredgecolor=INK)


def _ring(ax: Axes, ratio: float, point: Point) -> None:
    """Marks the setting that was chosen, where it was chosen by."""
    shifted = shift_points(ax, (HELD_OUT if point.expected is None else EXPECTED).shift)
    loss = point.best_guess.points
    (ring,) = ax.plot([ratio], [loss], "o", transform=shifted, label="chosen")
    ring.set(markersize=13, markerfacecolor="none", markeredgecolor=INK)
