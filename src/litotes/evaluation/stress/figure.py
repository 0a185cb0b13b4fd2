"""A forest plot: flips under each rewrite beside flips under its control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.core.figures import BAR, GAP, INK
from litotes.evaluation.stress.result import Measured, StressResult, StressRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_ROWS = 40
"""Rewrites in the figure: those with the most flips; the rest are in the tables."""

_ROW = 0.21  # inches
_SHIFT = 0.17  # of a row, up and down, so that rewrite and control do not cover each other


def figure(result: StressResult, *, fewest: int) -> Figure:
    """A panel for each task. fewest: rewrites with fewer texts are left out."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    shown = {}
    for task in result.tasks():
        shown[task] = [row for row in result.overall(task) if row.n >= fewest][:N_ROWS]
    n_rows = max(1, *(len(rows) for rows in shown.values()))
    picture = Figure(figsize=(5.6 * len(shown), _ROW * n_rows + 1.4), layout="constrained")
    axes = picture.subplots(1, len(shown), squeeze=False)[0]
    for (task, rows), ax in zip(shown.items(), axes, strict=True):
        draw(rows, ax, title=task)
    handles, labels = axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return picture


def draw(rows: list[StressRow], ax: Axes, *, title: str) -> None:
    """Draws the rows into given axes, the most flips at the top."""
    names = [_name(row) for row in rows]
    _draw_points(ax, [(n - _SHIFT, row.flips) for n, row in enumerate(rows)], BAR, "rewrite", "o")
    controls = []
    for n, row in enumerate(rows):
        if row.control is not None:
            controls.append((n + _SHIFT, row.control.flips))
    _draw_points(ax, controls, GAP, "control: as many words misspelled", "s")
    ax.set_yticks(range(len(rows)), names, fontsize=8, parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(left=-1)  # a point at 0 is seen whole
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel("answers that change, % of texts")
    ax.set_title(title, fontsize=11, parse_math=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _name(row: StressRow) -> str:
    star = " *" if row.is_worse_than_control else ""
    return f"{row.rewrite}{star} ({row.n})"


def _draw_points(
    ax: Axes, points: list[tuple[float, Measured]], colour: str, label: str, mark: str
) -> None:
    if not points:
        return
    places = [place for place, _ in points]
    values = [100 * one.value for _, one in points]
    below = [100 * (one.value - one.interval[0]) for _, one in points]
    above = [100 * (one.interval[1] - one.value) for _, one in points]
    bars = ax.errorbar(values, places, xerr=[below, above], fmt=mark, color=colour, elinewidth=1.1)
    bars.lines[0].set(markersize=4.5, markeredgecolor=INK, markeredgewidth=0.4)
    bars.set_label(label)
