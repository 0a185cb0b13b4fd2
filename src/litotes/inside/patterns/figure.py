"""patterns: how often maps show each of five patterns, standard against effective, over all and by
layer (figure 4 of the paper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.inside.drawing.canvas import Box, new_canvas
from litotes.inside.drawing.marks import (
    KINDS,
    NamedMean,
    Series,
    draw_ranking,
    draw_series,
    height_of,
    label_width,
    legend_above,
)
from litotes.inside.patterns.measure import PatternShares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _TOP, _LAYERS = 9.6, 3.0, 2.3  # inches
_ABREAST = 3
_BAR = 0.36  # of the place of a pattern


def draw_figure(result: PatternShares) -> Figure:
    n_rows = -(-len(result.classes) // _ABREAST)
    on = new_canvas(_WIDTH, _TOP + n_rows * _LAYERS)
    _draw_shares(result, on.chart(Box(0, 0, 0.6 * _WIDTH, _TOP)))
    marks = _differences(result)
    box = Box(0.6 * _WIDTH, 0, 0.4 * _WIDTH, min(_TOP, height_of(len(marks)) + 0.6))
    ax = on.chart(box, left=label_width(marks))
    ax.axvline(0, color="#777777", linewidth=1, linestyle="--")
    draw_ranking(marks, ax)
    ax.set_title("Effective less standard", fontsize=9)
    ax.set_xlabel("points, with 95 % interval", fontsize=8)
    width = _WIDTH / _ABREAST
    for number, name in enumerate(result.classes):
        row, column = divmod(number, _ABREAST)
        _draw_layers(
            result, name, on.chart(Box(column * width, _TOP + row * _LAYERS, width, _LAYERS))
        )
    return on.picture


def _draw_shares(result: PatternShares, ax: Axes) -> None:
    for number, (kind, look) in enumerate(KINDS.items()):
        places = [place + (number - 0.5) * _BAR for place in range(len(result.classes))]
        shares = [100 * (result.shares[kind][name] or 0.0) for name in result.classes]
        widths = [100 * (result.half_width[kind][name] or 0.0) for name in result.classes]
        hatch = None if look.filled else "////"
        ax.bar(
            places, shares, _BAR, color=look.fill, edgecolor=look.colour, hatch=hatch, label=kind
        )
        ax.errorbar(
            places, shares, yerr=widths, fmt="none", ecolor="#222222", elinewidth=1.2, capsize=2
        )
    ax.set_xticks(
        range(len(result.classes)), [name.replace("+", "\n+ ") for name in result.classes]
    )
    ax.set_ylim(bottom=0)
    ax.set_ylabel("% of the maps", fontsize=8)
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    legend_above(ax)


def _differences(result: PatternShares) -> list[NamedMean]:
    found = []
    for name in result.classes:
        value, width = result.difference[name], result.difference_half_width[name]
        if value is not None:
            found.append(
                NamedMean(
                    name,
                    100 * value,
                    None if width is None else (100 * (value - width), 100 * (value + width)),
                )
            )
    return found


def _draw_layers(result: PatternShares, name: str, ax: Axes) -> None:
    """A line for each kind over the layers; one scale for all patterns."""
    place = result.classes.index(name)
    series = {}
    for kind, look in KINDS.items():
        shares = [
            None if (share := row[place]) is None else 100 * share for row in result.by_layer[kind]
        ]
        series[kind] = Series(shares, [None] * len(shares), look)
    draw_series(series, ax, most_numbers=12)
    ax.set_ylim(-4, 104)
    ax.set_title(name, fontsize=9)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("% of the maps", fontsize=8)
