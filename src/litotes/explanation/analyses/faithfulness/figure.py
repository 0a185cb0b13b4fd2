"""faithfulness: what becomes of the answer as each method's words leave or stay, and the methods'
scores against random words.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from litotes.explanation.analyses.drawing.canvas import Box, Canvas, new_canvas
from litotes.explanation.analyses.drawing.marks import (
    MarkStyle,
    NamedMean,
    draw_ranking,
    draw_zero_line,
    label_width,
    ranking_height,
    remove_frame,
)
from litotes.explanation.analyses.faithfulness.measure import MethodScore, Ranking
from litotes.explanation.attribution import CONTROL, METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _CURVES, _LEGEND = 9.6, 3.2, 0.6  # inches

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^DvPX*"
"""Colours of Okabe and Ito; marks have another period, so that no two methods share both."""

_CURVE_LABELS = {
    "Without the words that count most": "taken away",
    "With nothing but the words that count most": "kept",
}

RANDOM = MarkStyle("#777777", "x", dash=":")


def draw_figure(result: Ranking) -> Figure:
    canvas = new_canvas(_WIDTH, _CURVES + _LEGEND + ranking_height(len(result.methods)))
    if not result.methods:
        message = "No text had a word: there was nothing to take away."
        canvas.figure.text(0.5, 0.5, message, ha="center", fontsize=9)
        return canvas.figure
    left, right = _curve_axes(canvas)
    for one in result.methods:
        has_band = one is result.methods[0] or one.method == CONTROL
        _draw_curve(result, one, "deletion", left, has_band=has_band)
        _draw_curve(result, one, "sufficiency", right, has_band=has_band)
    _draw_legend(canvas, right)
    _draw_scores(result, canvas)
    return canvas.figure


def _curve_axes(canvas: Canvas) -> list[Axes]:
    """For deletion and for sufficiency."""
    half, both = _WIDTH / 2, []
    for number, (title, label) in enumerate(_CURVE_LABELS.items()):
        ax = canvas.chart(Box(number * half, 0, half, _CURVES))
        ax.set_title(title, fontsize=9)
        ax.set_xlabel(f"share of the words {label}", fontsize=8)
        ax.set_ylabel("the answer: its probability, or its value", fontsize=8)
        remove_frame(ax)
        both.append(ax)
    return both


def _draw_legend(canvas: Canvas, ax: Axes) -> None:
    """Between the curves and the scores."""
    handles, labels = ax.get_legend_handles_labels()
    place: dict[str, Any] = {
        "loc": "upper center",
        "bbox_to_anchor": (0.5, 1 - _CURVES / canvas.height),
    }
    canvas.figure.legend(handles, labels, **place, ncols=5, frameon=False, fontsize=8)


def style_of(method: str) -> MarkStyle:
    """The same in every figure, whatever the ranking."""
    if method == CONTROL:
        return RANDOM
    place = [name for name in METHODS if name != CONTROL].index(method)
    return MarkStyle(_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)])


def _draw_curve(result: Ranking, one: MethodScore, name: str, ax: Axes, *, has_band: bool) -> None:
    """name: of the curve. has_band: its interval is drawn too; nine of them would be a fog."""
    style = style_of(one.method)
    values = [math.nan if value is None else value for value in getattr(one, name)]
    [line] = ax.plot(
        result.shares,
        values,
        color=style.colour,
        marker=style.marker,
        linestyle=style.dash,
        linewidth=1.2,
        markersize=4,
    )
    line.set_label(one.method)
    if has_band:
        widths = [width or 0.0 for width in getattr(one, f"{name}_half_width")]
        low = [value - width for value, width in zip(values, widths, strict=True)]
        high = [value + width for value, width in zip(values, widths, strict=True)]
        ax.fill_between(result.shares, low, high, color=style.colour, alpha=0.18, linewidth=0)


def _draw_scores(result: Ranking, canvas: Canvas) -> None:
    half, top = _WIDTH / 2, _CURVES + _LEGEND
    scores = {
        "lead": "Comprehensiveness less sufficiency loss",
        "over_random": "The same, less that of random words",
    }
    for number, (name, title) in enumerate(scores.items()):
        means = [_named_mean(one, name) for one in result.methods]
        box = Box(number * half, top, half, canvas.height - top)
        ax = canvas.chart(box, left=label_width(means))
        draw_zero_line(ax)
        draw_ranking(means, ax)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("fall of the answer, with its 95 % interval", fontsize=8)


def _named_mean(one: MethodScore, score: str) -> NamedMean:
    mean = getattr(one, score)
    has_interval = mean.low is not None and mean.high is not None
    return NamedMean(one.method, mean.value, (mean.low, mean.high) if has_interval else None)
