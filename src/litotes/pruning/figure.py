"""The frontier of a pruning: what each setting loses against what it saves, counted in operations
and measured in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from litotes.core.errors import UserError
from litotes.pruning.frontier import Loss, Point
from litotes.report.bars import BarStyle, draw_bars, shift_points
from litotes.report.figure import GAP, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAVINGS = {
    "flops_ratio": "times fewer operations than dense",
    "speed_ratio": "times as fast as dense",
}


# from the palette of Okabe and Ito; filled and hollow as well, for print without colour
HELD_OUT = BarStyle("held out", "#0072B2", fill="#0072B2", shift=-5.0)
TEST = BarStyle("test", GAP, fill="white", shift=5.0)


def draw(
    points: Sequence[Point],
    ax: Axes,
    *,
    saving: Literal["flops_ratio", "speed_ratio"],
    budget: float,
) -> None:
    """Draws losses with their 95 % intervals over texts against one saving; the chosen setting is
    ringed where it was chosen by.
    """
    ordered = sorted(points, key=lambda point: float(getattr(point, saving)))
    ratios = [float(getattr(point, saving)) for point in ordered]
    ax.axhline(0, color="#BBBBBB", linewidth=1)
    ax.axhline(budget, color=INK, linestyle="--", linewidth=1, label=f"budget, {budget:g}")
    _bars(ax, ratios, [point.loss for point in ordered], HELD_OUT)
    test_losses = [point.test_loss for point in ordered if point.test_loss is not None]
    if test_losses:  # all points have one, or none
        _bars(ax, ratios, test_losses, TEST)
    for ratio, point in zip(ratios, ordered, strict=True):
        if point.chosen:
            _ring(ax, ratio, point.loss.points)
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


def _ring(ax: Axes, ratio: float, loss: float) -> None:
    """Marks the setting that was chosen."""
    shifted = shift_points(ax, HELD_OUT.shift)
    (ring,) = ax.plot([ratio], [loss], "o", transform=shifted, label="chosen")
    ring.set(markersize=13, markerfacecolor="none", markeredgecolor=INK)
