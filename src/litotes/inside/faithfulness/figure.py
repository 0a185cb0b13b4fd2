"""faithfulness: what becomes of the answer as each method's words leave or stay, and the methods'
scores against random words.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from litotes.explain.attribution import CONTROL, METHODS
from litotes.inside.drawing.canvas import Box, Canvas, new_canvas
from litotes.inside.drawing.marks import (
    MarkStyle,
    NamedMean,
    draw_ranking,
    height_of,
    label_width,
    plain,
)
from litotes.inside.faithfulness.measure import Mean, MethodScore, Ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _CURVES, _LEGEND = 9.6, 3.2, 0.6  # inches

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^DvPX*"
"""Colours of Okabe and Ito; marks have another period, so that no two methods share both."""

RANDOM = MarkStyle("#777777", "x", dash=":")


def draw_figure(result: Ranking) -> Figure:
    bottom = height_of(len(result.methods))
    on = new_canvas(_WIDTH, _CURVES + _LEGEND + bottom)
    if not result.methods:
        on.picture.text(
            0.5, 0.5, "No text had a word: there was nothing to take away.", ha="center", fontsize=9
        )
        return on.picture
    half = _WIDTH / 2
    curves = {
        "deletion": "Without the words that count most",
        "sufficiency": "With nothing but the words that count most",
    }
    for number, (name, title) in enumerate(curves.items()):
        ax = on.chart(Box(number * half, 0, half, _CURVES))
        for one in result.methods:
            _curve(result, one, name, ax)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel(
            f"share of the words {'taken away' if name == 'deletion' else 'kept'}", fontsize=8
        )
        ax.set_ylabel("the answer: its probability, or its value", fontsize=8)
        plain(ax)
    handles, labels = ax.get_legend_handles_labels()
    top = 1 - _CURVES / on.height
    on.picture.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, top),
        ncols=5,
        frameon=False,
        fontsize=8,
    )
    _scores(result, on)
    return on.picture


def style_of(method: str) -> MarkStyle:
    """The same in every figure, whatever the ranking."""
    if method == CONTROL:
        return RANDOM
    place = [name for name in METHODS if name != CONTROL].index(method)
    return MarkStyle(_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)])


def _curve(result: Ranking, one: MethodScore, name: str, ax: Axes) -> None:
    """A line; the band of its interval only for the first of the ranking and for random words,
    since nine would be a fog.
    """
    look, values, widths = (
        style_of(one.method),
        getattr(one, name),
        getattr(one, f"{name}_half_width"),
    )
    known = [math.nan if value is None else value for value in values]
    line = ax.plot(
        result.shares,
        known,
        color=look.colour,
        marker=look.marker,
        linestyle=look.dash,
        linewidth=1.2,
        markersize=4,
    )[0]
    line.set_label(one.method)
    if one is result.methods[0] or one.method == CONTROL:
        spread = [width or 0.0 for width in widths]
        low, high = (
            [value + sign * width for value, width in zip(known, spread, strict=True)]
            for sign in (-1, 1)
        )
        ax.fill_between(result.shares, low, high, color=look.colour, alpha=0.18, linewidth=0)


def _scores(result: Ranking, on: Canvas) -> None:
    half, top = _WIDTH / 2, _CURVES + _LEGEND
    scores = {
        "lead": "Comprehensiveness less sufficiency loss",
        "over_random": "The same, less that of random words",
    }
    for number, (name, title) in enumerate(scores.items()):
        marks = [_mark(one.method, getattr(one, name)) for one in result.methods]
        ax = on.chart(Box(number * half, top, half, on.height - top), left=label_width(marks))
        ax.axvline(0, color="#777777", linewidth=1, linestyle="--")
        draw_ranking(marks, ax)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("fall of the answer, with its 95 % interval", fontsize=8)


def _mark(name: str, mean: Mean) -> NamedMean:
    return NamedMean(
        name, mean.value, None if mean.low is None or mean.high is None else (mean.low, mean.high)
    )
