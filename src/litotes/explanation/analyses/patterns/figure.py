"""patterns: how often maps show each of five patterns, standard against effective, over all and by
layer (figure 4 of the paper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.explanation.analyses.drawing.canvas import Box, Canvas, new_canvas
from litotes.explanation.analyses.drawing.marks import (
    KIND_STYLES,
    MarkStyle,
    NamedMean,
    Series,
    draw_ranking,
    draw_series,
    draw_zero_line,
    label_width,
    legend_above,
    ranking_height,
    remove_frame,
)
from litotes.explanation.analyses.means import Number
from litotes.explanation.analyses.patterns.measure import PatternShares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _TOP, _LAYERS = 9.6, 3.0, 2.3  # inches
_ABREAST = 3
_BAR = 0.36  # of the place of a pattern


def draw_figure(result: PatternShares) -> Figure:
    n_rows = -(-len(result.classes) // _ABREAST)
    canvas = new_canvas(_WIDTH, _TOP + n_rows * _LAYERS)
    _draw_shares(result, canvas.chart(Box(0, 0, 0.6 * _WIDTH, _TOP)))
    if len(result.kinds) > 1:
        _draw_differences(result, canvas)
    width = _WIDTH / _ABREAST
    for number, name in enumerate(result.classes):
        row, column = divmod(number, _ABREAST)
        box = Box(column * width, _TOP + row * _LAYERS, width, _LAYERS)
        _draw_layers(result, name, canvas.chart(box))
    return canvas.figure


def _draw_shares(result: PatternShares, ax: Axes) -> None:
    for number, kind in enumerate(result.kinds):
        shift = (number - (len(result.kinds) - 1) / 2) * _BAR
        _draw_bars(result, kind, KIND_STYLES[kind], ax, shift=shift)
    names = [name.replace("+", "\n+ ") for name in result.classes]
    ax.set_xticks(range(len(names)), names)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("% of the maps", fontsize=8)
    remove_frame(ax)
    legend_above(ax)


def _draw_bars(
    result: PatternShares, kind: str, style: MarkStyle, ax: Axes, *, shift: float
) -> None:
    places = [place + shift for place in range(len(result.classes))]
    shares = [_percent(result.shares[kind][name]) or 0.0 for name in result.classes]
    widths = [_percent(result.half_width[kind][name]) or 0.0 for name in result.classes]
    hatch = None if style.filled else "////"
    ax.bar(places, shares, _BAR, color=style.fill, edgecolor=style.colour, hatch=hatch, label=kind)
    ax.errorbar(
        places, shares, yerr=widths, fmt="none", ecolor="#222222", elinewidth=1.2, capsize=2
    )


def _draw_differences(result: PatternShares, canvas: Canvas) -> None:
    differences = []
    for name in result.classes:
        value, width = result.difference[name], result.difference_half_width[name]
        if value is not None:
            ends = None if width is None else (100 * (value - width), 100 * (value + width))
            differences.append(NamedMean(name, 100 * value, ends))
    height = min(_TOP, ranking_height(len(differences)) + 0.6)
    box = Box(0.6 * _WIDTH, 0, 0.4 * _WIDTH, height)
    ax = canvas.chart(box, left=label_width(differences))
    draw_zero_line(ax)
    draw_ranking(differences, ax)
    ax.set_title("Effective less standard", fontsize=9)
    ax.set_xlabel("points, with 95 % interval", fontsize=8)


def _draw_layers(result: PatternShares, name: str, ax: Axes) -> None:
    """A line for each kind over the layers; one scale for all patterns."""
    place = result.classes.index(name)
    series = {}
    for kind in result.kinds:
        shares = [_percent(layer[place]) for layer in result.by_layer[kind]]
        series[kind] = Series(shares, [None] * len(shares), KIND_STYLES[kind])
    draw_series(series, ax, most_numbers=12)
    ax.set_ylim(-4, 104)
    ax.set_title(name, fontsize=9)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("% of the maps", fontsize=8)


def _percent(share: Number) -> Number:
    return None if share is None else 100 * share
