"""Heatmaps of (layer, attention_head) tables: side by side on one scale with their colour bar,
what is missing hatched.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from textwrap import fill
from typing import TYPE_CHECKING, Any

from litotes.core.figures import INK, ON_LIGHT
from litotes.explanation.analyses.drawing.canvas import (
    LETTER_WIDTH,
    MAX_WIDTH,
    Box,
    Canvas,
    new_canvas,
)
from litotes.explanation.analyses.means import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.22  # inches of a cell: a number of two digits fits below it
_NARROWEST, _LOWEST = 2.0, 1.3  # inches of a map: title and unit fit next to it
# inches around a map: numbers of layers; a title of two lines; numbers of heads and their label
_LEFT, _ABOVE, _BELOW = 0.5, 0.4, 0.5
# inches: between map and colour bar; of the bar; for its numbers and its unit
_GAP, _BAR, _BAR_LABELS = 0.12, 0.13, 0.75

_ROUNDING = 1e-4  # of a step, that a number may lie beyond a limit


@dataclass(frozen=True)
class HeadMap:
    """One table and its title. framed: the (layer, attention_head) that stand out, from 0."""

    title: str
    values: Table
    framed: Collection[tuple[int, int]] = ()

    @property
    def known_values(self) -> list[float]:
        return [value for value in chain.from_iterable(self.values) if value is not None]

    @property
    def has_holes(self) -> bool:
        return any(value is None for value in chain.from_iterable(self.values))


@dataclass(frozen=True)
class MapGroup:
    """Maps side by side, of one size, that share a scale and its colour bar.

    unit: of the numbers. limits: of the scale.
    """

    maps: tuple[HeadMap, ...]
    unit: str
    limits: tuple[float, float]

    @property
    def map_size(self) -> tuple[float, float]:
        """Inches of a map across and down."""
        values = self.maps[0].values
        return max(_CELL * len(values[0]), _NARROWEST), max(_CELL * len(values), _LOWEST)

    @property
    def width(self) -> float:
        return len(self.maps) * (_LEFT + self.map_size[0]) + _GAP + _BAR + _BAR_LABELS

    @property
    def height(self) -> float:
        return _ABOVE + self.map_size[1] + _BELOW


def single_map(
    title: str,
    values: Table,
    unit: str,
    *,
    low: float | None = None,
    high: float | None = None,
    step: float = 0.1,
) -> MapGroup:
    """One map on a scale of its own."""
    head_map = HeadMap(title, values)
    return MapGroup((head_map,), unit, scale([head_map], low=low, high=high, step=step))


def scale(
    maps: Sequence[HeadMap],
    *,
    low: float | None = None,
    high: float | None = None,
    step: float = 0.1,
) -> tuple[float, float]:
    """Limits that hold every number of the maps, at multiples of a step where they are not given,
    and never the same twice.

    low, high: where the numbers may end; rounding that lies beyond does not move them.
    """
    known = list(chain.from_iterable(one.known_values for one in maps)) or [low or 0.0]
    bottom = math.floor(min(known) / step + _ROUNDING) * step
    top = math.ceil(max(known) / step - _ROUNDING) * step
    if low is not None:
        bottom = min(low, bottom)
    if high is not None:
        top = max(high, top)
    if top - bottom > step / 2:
        return bottom, top
    return (bottom - step, top) if top == high else (bottom, bottom + step)


def draw_map(head_map: HeadMap, ax: Axes, *, limits: tuple[float, float], width: float) -> Any:
    """Draws one map into axes so many inches wide; returns the image, for a colour bar."""
    values = [[math.nan if value is None else value for value in row] for row in head_map.values]
    # shines through where there is no number
    ax.patch.set(facecolor="white", hatch="//////", edgecolor="#AAAAAA")
    low, high = limits
    image = ax.imshow(
        values, cmap="YlGnBu", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    _label_axes(head_map, ax, width=width)
    _mark_negative(values, ax)
    _frame(head_map.framed, ax)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return image


def _mark_negative(values: Sequence[Sequence[float]], ax: Axes) -> None:
    """A dash below 0, since print in grey has no hue."""
    for layer, row in enumerate(values):
        for head, value in enumerate(row):
            if value < 0:
                ax.text(head, layer, "–", ha="center", va="center", fontsize=7, color=ON_LIGHT)


def _label_axes(head_map: HeadMap, ax: Axes, *, width: float) -> None:
    """Layers and heads are counted from 1."""
    heads = [str(place + 1) for place in range(len(head_map.values[0]))]
    layers = [str(place + 1) for place in range(len(head_map.values))]
    ax.xaxis.set_ticks(range(len(heads)), heads, fontsize=7)
    ax.yaxis.set_ticks(range(len(layers)), layers, fontsize=7)
    ax.tick_params(length=0, pad=2)
    note = " (hatched: none)" if head_map.has_holes else ""
    ax.set_xlabel(f"attention head{note}", fontsize=8, labelpad=2)
    title = fill(head_map.title, int(width / LETTER_WIDTH))
    ax.set_title(title, fontsize=9, pad=4, parse_math=False)


def draw_group(group: MapGroup, canvas: Canvas, *, left: float, top: float) -> None:
    """Draws the maps with their colour bar, from that corner on."""
    width, height = group.map_size
    for number, head_map in enumerate(group.maps):
        box = Box(left + number * (_LEFT + width) + _LEFT, top + _ABOVE, width, height)
        ax = canvas.axes(box)
        image = draw_map(head_map, ax, limits=group.limits, width=width)
        if number == 0:
            ax.set_ylabel("layer", fontsize=8, labelpad=2)
    bar_box = Box(box.left + width + _GAP, box.top, _BAR, height)
    _draw_colour_bar(image, group.unit, canvas, bar_box)


def _draw_colour_bar(image: Any, unit: str, canvas: Canvas, box: Box) -> None:
    bar = canvas.figure.colorbar(image, cax=canvas.axes(box))
    bar.set_label(fill(unit, int(box.height / 0.062)), fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def draw_groups(groups: Sequence[MapGroup], canvas: Canvas, *, top: float = 0) -> None:
    """Draws groups from left to right, as many in a line as fit."""
    for line in _lines(groups):
        left = 0.0
        for group in line:
            draw_group(group, canvas, left=left, top=top)
            left += group.width
        top += _line_height(line)


def groups_width(groups: Sequence[MapGroup]) -> float:
    """Inches that the groups take when laid out."""
    return max(sum(group.width for group in line) for line in _lines(groups))


def groups_height(groups: Sequence[MapGroup]) -> float:
    return sum(_line_height(line) for line in _lines(groups))


def maps_figure(groups: Sequence[MapGroup]) -> Figure:
    """Nothing but groups of maps."""
    canvas = new_canvas(groups_width(groups), groups_height(groups))
    draw_groups(groups, canvas)
    return canvas.figure


def _lines(groups: Sequence[MapGroup]) -> Iterator[list[MapGroup]]:
    line: list[MapGroup] = []
    for group in groups:
        if line and sum(other.width for other in line) + group.width > MAX_WIDTH:
            yield line
            line = []
        line.append(group)
    yield line


def _line_height(line: Sequence[MapGroup]) -> float:
    return max(group.height for group in line)


def _frame(places: Collection[tuple[int, int]], ax: Axes) -> None:
    from matplotlib.patches import Rectangle

    line: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 1.6, "clip_on": False}
    for layer, head in places:
        ax.add_patch(Rectangle((head - 0.5, layer - 0.5), 1, 1, **line))
