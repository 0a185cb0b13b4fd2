"""Heatmaps of (layer, attention_head) tables: side by side on one scale, their colour bar beside
them, what is missing hatched.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from textwrap import fill
from typing import TYPE_CHECKING, Any

from litotes.inside.drawing.canvas import LETTER_WIDTH, MAX_WIDTH, Box, Canvas, new_canvas
from litotes.inside.means import Table
from litotes.report.figure import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.22  # inches of a cell: a number of two digits fits below it
_NARROWEST, _LOWEST = 2.0, 1.3  # inches of a map: title and unit fit beside it
# inches around a map: numbers of layers; a title of two lines; numbers of heads and their label
_LEFT, _ABOVE, _BELOW = 0.5, 0.4, 0.5
# inches: between map and colour bar; of the bar; for its numbers and its unit
_GAP, _BAR, _BESIDE = 0.12, 0.13, 0.75


@dataclass(frozen=True)
class HeadMap:
    """One table and what it shows. framed: the (layer, attention_head) that stand out, counted from
    0.
    """

    title: str
    values: Table
    framed: Collection[tuple[int, int]] = ()

    @property
    def known(self) -> list[float]:
        return [value for value in chain.from_iterable(self.values) if value is not None]


@dataclass(frozen=True)
class MapGroup:
    """Maps side by side, of one size, that share a scale and its colour bar. unit: of the numbers.
    limits: of the scale.
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
        return len(self.maps) * (_LEFT + self.map_size[0]) + _GAP + _BAR + _BESIDE

    @property
    def height(self) -> float:
        return _ABOVE + self.map_size[1] + _BELOW


def scale(
    maps: Sequence[HeadMap],
    *,
    low: float | None = None,
    high: float | None = None,
    step: float = 0.1,
) -> tuple[float, float]:
    """Limits that hold every number of the maps, at multiples of a step where they are not given,
    and never the same twice.
    """
    known = [value for shown in maps for value in shown.known] or [0.0]
    bottom, top = (
        math.floor(min(known) / step + 1e-9) * step,
        math.ceil(max(known) / step - 1e-9) * step,
    )
    bottom = bottom if low is None else min(low, bottom)
    top = top if high is None else max(high, top)
    return bottom, max(top, bottom + step)


def draw(shown: HeadMap, ax: Axes, *, limits: tuple[float, float], width: float) -> Any:
    """Draws one map into axes so many inches wide and hands the image back.

    Below 0 a dash, since print in grey has no hue.
    """
    values = [[math.nan if value is None else value for value in row] for row in shown.values]
    # shines through where there is no number
    ax.patch.set(facecolor="white", hatch="//////", edgecolor="#AAAAAA")
    image = ax.imshow(
        values,
        cmap="YlGnBu",
        vmin=limits[0],
        vmax=limits[1],
        aspect="auto",
        interpolation="nearest",
    )
    for axis, n in ((ax.xaxis, len(values[0])), (ax.yaxis, len(values))):
        axis.set_ticks(range(n), [str(place + 1) for place in range(n)], fontsize=7)
    ax.tick_params(length=0, pad=2)
    missing = any(value is None for value in chain.from_iterable(shown.values))
    ax.set_xlabel(
        "attention head (hatched: none)" if missing else "attention head", fontsize=8, labelpad=2
    )
    ax.set_title(fill(shown.title, int(width / LETTER_WIDTH)), fontsize=9, pad=4, parse_math=False)
    for layer, row in enumerate(values):
        for head, value in enumerate(row):
            if value < 0:
                ax.text(head, layer, "–", ha="center", va="center", fontsize=7)
    _frame(shown.framed, ax)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return image


def draw_group(band: MapGroup, on: Canvas, *, left: float, top: float) -> None:
    """Draws the maps with their colour bar, from that corner on."""
    width, height = band.map_size
    images = []
    for number, shown in enumerate(band.maps):
        box = Box(left + number * (_LEFT + width) + _LEFT, top + _ABOVE, width, height)
        ax = on.axes(box)
        images.append(draw(shown, ax, limits=band.limits, width=width))
        if not number:
            ax.set_ylabel("layer", fontsize=8, labelpad=2)
    bar_ax = on.axes(Box(box.left + width + _GAP, box.top, _BAR, height))
    bar = on.picture.colorbar(images[-1], cax=bar_ax)
    bar.set_label(fill(band.unit, int(height / 0.062)), fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def draw_groups(bands: Sequence[MapGroup], on: Canvas, *, top: float = 0) -> None:
    """Draws bands from left to right, as many in a line as fit."""
    for line in _lines(bands):
        left = 0.0
        for band in line:
            draw_group(band, on, left=left, top=top)
            left += band.width
        top += _height(line)


def width_of(bands: Sequence[MapGroup]) -> float:
    """Inches that the bands take when laid out."""
    return max(sum(band.width for band in line) for line in _lines(bands))


def height_of(bands: Sequence[MapGroup]) -> float:
    return sum(_height(line) for line in _lines(bands))


def figure(bands: Sequence[MapGroup]) -> Figure:
    """Nothing but bands of maps."""
    on = new_canvas(width_of(bands), height_of(bands))
    draw_groups(bands, on)
    return on.picture


def _lines(bands: Sequence[MapGroup]) -> Iterator[list[MapGroup]]:
    line: list[MapGroup] = []
    for band in bands:
        if line and sum(other.width for other in line) + band.width > MAX_WIDTH:
            yield line
            line = []
        line.append(band)
    yield line


def _height(line: Sequence[MapGroup]) -> float:
    return max(band.height for band in line)


def _frame(places: Collection[tuple[int, int]], ax: Axes) -> None:
    from matplotlib.patches import Rectangle

    for layer, head in places:
        ax.add_patch(
            Rectangle(
                (head - 0.5, layer - 0.5),
                1,
                1,
                fill=False,
                edgecolor=INK,
                linewidth=1.6,
                clip_on=False,
            )
        )
