"""token_types: what [CLS] gives to each type of piece, and what all others give to [CLS] and [SEP]
(figures 1, 5 and 6 of the paper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litotes.explanation.analyses.drawing.canvas import Box, Canvas, new_canvas
from litotes.explanation.analyses.drawing.head_maps import (
    HeadMap,
    MapGroup,
    draw_groups,
    groups_height,
    groups_width,
    scale,
)
from litotes.explanation.analyses.drawing.marks import KIND_STYLES, Series, draw_series
from litotes.explanation.analyses.token_types.result import SPECIAL, TokenTypes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# inches: of all panels across; of one down; for the key above them
_WIDTH, _HEIGHT, _KEY = 9.6, 2.1, 0.25
_ABREAST = 3


def draw_figure(result: TokenTypes) -> Figure:
    groups = [_map_group(result, name) for name in SPECIAL]
    n_rows = -(-len(result.types) // _ABREAST)
    top = _KEY + n_rows * _HEIGHT
    canvas = new_canvas(max(_WIDTH, groups_width(groups)), top + groups_height(groups))
    panels = _draw_panels(result, canvas)
    handles, labels = panels[-1].get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 1)}
    canvas.figure.legend(handles, labels, **place, ncols=2, frameon=False, fontsize=8)
    draw_groups(groups, canvas, top=top)
    return canvas.figure


def _draw_panels(result: TokenTypes, canvas: Canvas) -> list[Axes]:
    """A panel for each type, all on one scale."""
    limits = _limits(result)
    width = canvas.width / _ABREAST
    panels = []
    for number in range(len(result.types)):
        row, column = divmod(number, _ABREAST)
        ax = canvas.chart(Box(column * width, _KEY + row * _HEIGHT, width, _HEIGHT))
        _draw_type(result, number, ax)
        ax.set_ylim(*limits)
        ax.set_ylabel("weight" if column == 0 else "", fontsize=8)
        panels.append(ax)
    return panels


def _draw_type(result: TokenTypes, number: int, ax: Axes) -> None:
    """What [CLS] gives to one type, by attention head."""
    series = {}
    for kind in result.kinds:
        values = result.from_first[kind][number]
        widths = result.from_first_half_width[kind][number]
        series[kind] = Series(values, widths, KIND_STYLES[kind])
    draw_series(series, ax, joined=False, most_numbers=12)
    ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
    name = result.types[number]
    ax.set_title(f"{name} (n {result.n_with[name]})", fontsize=9)
    ax.set_xlabel("attention head", fontsize=8)


def _map_group(result: TokenTypes, name: str) -> MapGroup:
    maps = tuple(
        HeadMap(f"To {name}, {kind}", result.from_others[name][kind]) for kind in result.kinds
    )
    return MapGroup(maps, "weight, mean over other pieces", scale(maps, low=0, high=1))


def _limits(result: TokenTypes) -> tuple[float, float]:
    """One scale for all types, with every interval inside."""
    ends = [0.0, 0.1]
    for kind in result.kinds:
        rows = zip(result.from_first[kind], result.from_first_half_width[kind], strict=True)
        for values, widths in rows:
            for value, width in zip(values, widths, strict=True):
                if value is not None:
                    ends += [value - (width or 0.0), value + (width or 0.0)]
    low, high = min(ends), max(ends)
    margin = 0.05 * (high - low)
    return low - margin, high + margin
