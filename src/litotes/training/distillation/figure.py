"""The frontier of a distillation: macro-F1 with its interval against texts a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litotes.core.errors import UserError
from litotes.core.figures import GAP, INK, BarStyle, draw_bars
from litotes.training.distillation.frontier import TEACHER, Point
from litotes.training.distillation.shapes import BASELINE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# from the palette of Okabe and Ito; filled and hollow as well, for print without colour
TEACHERS = BarStyle("teachers", INK, fill=INK)
STUDENTS = BarStyle("students", "#0072B2", fill="#0072B2", shift=4.0)
# as fast as a student of its shape: drawn on its other side
BASELINES = BarStyle("labels alone", GAP, fill="white", shift=-4.0)


def figure(points: Sequence[Point]) -> Figure:
    """Every point with its name, mean over tasks."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    drawn = [point for point in points if point.score is not None]
    if not drawn:
        raise UserError("A frontier needs a test split with labels: without one nothing is drawn.")
    picture = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = picture.subplots()
    for style in (TEACHERS, STUDENTS, BASELINES):
        chosen = [point for point in drawn if _style(point) == style]
        speeds = [point.texts_per_second for point in chosen]
        scores = [point.score for point in chosen if point.score is not None]
        values, intervals = [one.macro_f1 for one in scores], [one.interval for one in scores]
        if chosen:
            draw_bars(ax, speeds, values, intervals, style)
        for point, speed, value in zip(chosen, speeds, values, strict=True):
            ax.annotate(
                f"{point.name}, {point.n_parameters / 1e6:.3g} M",
                (speed, value),
                xytext=(-11, 4) if style is BASELINES else (11, 4),
                ha="right" if style is BASELINES else "left",
                textcoords="offset points",
                fontsize=8,
                color=INK,
            )
    ax.margins(x=0.3)
    ax.set_xlim(left=0)
    ax.set_xlabel("texts a second on this machine")
    ax.set_ylabel("macro-F1, mean over tasks")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return picture


def _style(point: Point) -> BarStyle:
    return {TEACHER: TEACHERS, BASELINE: BASELINES}.get(point.name, STUDENTS)
