"""What the figures of all analyses share: axes placed in inches, heatmaps of attention heads, means
with their intervals.

Letters have known sizes here, so margins are known too; matplotlib would take seconds to find them
out for dozens of axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from textwrap import fill
from typing import TYPE_CHECKING, Any

from litotes.core.figures import INK, ON_LIGHT
from litotes.explanation.analyses.analysis import Number, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WIDTH = 10.6
"""Inches: a wider figure has to be shrunk on a page until its numbers cannot be read."""

LETTER_WIDTH = 0.075
"""Inches of a letter in a title or a name, on average and with some air."""


@dataclass(frozen=True)
class Box:
    """A place on a canvas, in inches from its upper left corner."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Canvas:
    """A figure with its size in inches."""

    figure: Figure
    width: float
    height: float

    def axes(self, box: Box) -> Axes:
        bottom = self.height - box.top - box.height
        across, down = self.width, self.height
        return self.figure.add_axes(
            (box.left / across, bottom / down, box.width / across, box.height / down)
        )

    def chart(self, box: Box, *, left: float = 0.65) -> Axes:
        """Axes within a box that has to hold their title, numbers and labels as well; left: inches
        for what stands there.
        """
        return self.axes(
            Box(box.left + left, box.top + 0.3, box.width - left - 0.15, box.height - 0.8)
        )


def new_canvas(width: float, height: float) -> Canvas:
    from matplotlib.figure import Figure  # takes half a second; only figures need it

    return Canvas(Figure(figsize=(width, height)), width, height)


def in_rows(n: int, box: Box, *, abreast: int = 3) -> Iterator[Box]:
    """The boxes of n panels, so many in a row; `box` is that of the first row."""
    width = box.width / abreast
    for number in range(n):
        row, column = divmod(number, abreast)
        yield Box(column * width, box.top + row * box.height, width, box.height)


# Heatmaps of (layer, attention_head): side by side on one scale with their colour bar, what is
# missing hatched.

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


def single_map(title: str, values: Table, unit: str, **ends: float) -> MapGroup:
    """One map on a scale of its own; ends: those of `scale`."""
    head_map = HeadMap(title, values)
    return MapGroup((head_map,), unit, scale([head_map], **ends))


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


def maps_figure(
    groups: Sequence[MapGroup],
    *,
    top: float = 0.0,
    draw_above: Callable[[Canvas], None] | None = None,
    least_width: float = 0.0,
) -> Figure:
    """Groups of maps from left to right, as many in a line as fit.

    draw_above: draws what stands above them, `top` inches high.
    """
    lines: list[list[MapGroup]] = [[]]
    for group in groups:
        if lines[-1] and sum(other.width for other in lines[-1]) + group.width > MAX_WIDTH:
            lines.append([])
        lines[-1].append(group)
    heights = [max(group.height for group in line) for line in lines]
    width = max(least_width, *(sum(group.width for group in line) for line in lines))
    canvas = new_canvas(width, top + sum(heights))
    if draw_above is not None:
        draw_above(canvas)
    for line, height in zip(lines, heights, strict=True):
        left = 0.0
        for group in line:
            draw_group(group, canvas, left=left, top=top)
            left += group.width
        top += height
    return canvas.figure


def draw_group(group: MapGroup, canvas: Canvas, *, left: float, top: float) -> None:
    """Draws the maps with their colour bar, from that corner on."""
    width, height = group.map_size
    for number, head_map in enumerate(group.maps):
        box = Box(left + number * (_LEFT + width) + _LEFT, top + _ABOVE, width, height)
        ax = canvas.axes(box)
        image = _draw_map(head_map, ax, limits=group.limits, width=width)
        if number == 0:
            ax.set_ylabel("layer", fontsize=8, labelpad=2)
    bar_box = Box(box.left + width + _GAP, box.top, _BAR, height)
    bar = canvas.figure.colorbar(image, cax=canvas.axes(bar_box))
    bar.set_label(fill(group.unit, int(height / 0.062)), fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def _draw_map(head_map: HeadMap, ax: Axes, *, limits: tuple[float, float], width: float) -> Any:
    """Draws one map into axes so many inches wide; returns the image, for a colour bar.

    Layers and heads are counted from 1.
    """
    from matplotlib.patches import Rectangle

    values = [[math.nan if value is None else value for value in row] for row in head_map.values]
    # shines through where there is no number
    ax.patch.set(facecolor="white", hatch="//////", edgecolor="#AAAAAA")
    low, high = limits
    image = ax.imshow(
        values, cmap="YlGnBu", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    for axis, n in ((ax.xaxis, len(values[0])), (ax.yaxis, len(values))):
        axis.set_ticks(range(n), [str(place + 1) for place in range(n)], fontsize=7)
    ax.tick_params(length=0, pad=2)
    has_holes = any(map(math.isnan, chain.from_iterable(values)))
    note = " (hatched: none)" if has_holes else ""
    ax.set_xlabel(f"attention head{note}", fontsize=8, labelpad=2)
    title = fill(head_map.title, int(width / LETTER_WIDTH))
    ax.set_title(title, fontsize=9, pad=4, parse_math=False)
    for layer, row in enumerate(values):
        for head, value in enumerate(row):
            if value < 0:  # a dash, since print in grey has no hue
                ax.text(head, layer, "–", ha="center", va="center", fontsize=7, color=ON_LIGHT)
    line: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 1.6, "clip_on": False}
    for layer, head in head_map.framed:
        ax.add_patch(Rectangle((head - 0.5, layer - 0.5), 1, 1, **line))
    ax.spines[:].set_visible(False)
    return image


# Means with their intervals as marks: along the layers, or below one another by name.


@dataclass(frozen=True)
class MarkStyle:
    """How one kind of thing is told from others: by colour and, for print in grey, by the form of
    its mark and by whether that is filled.
    """

    colour: str
    marker: str = "o"
    filled: bool = True
    dash: str = "-"

    @property
    def fill(self) -> str:
        return self.colour if self.filled else "white"


PLAIN = MarkStyle(INK)
KIND_STYLES: Mapping[str, MarkStyle] = {
    "standard": MarkStyle("#009E73"),
    "effective": MarkStyle("#0072B2", "s", filled=False, dash="--"),
}
"""Green and blue as in Sun and Marasović 2021, from the palette of Okabe and Ito."""

_LONGEST = 20  # letters of a name; what is longer is cut, and written out in the tables

_APART = 0.16  # of a place on the axis, between marks that belong to the same place


@dataclass(frozen=True)
class Series:
    """Means along an axis with half of their intervals; None where nothing could be measured."""

    values: Sequence[Number]
    half_widths: Sequence[Number]
    style: MarkStyle = PLAIN


@dataclass(frozen=True)
class NamedMean:
    """A mean under its name, with its interval where there is one. note: stands behind the name."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    note: str = ""

    @property
    def label(self) -> str:
        """The name as it can be drawn: cut where it is long, and without characters that would turn
        or break the line.
        """
        plain_name = "".join(letter if letter.isprintable() else "▯" for letter in self.name)
        cut = plain_name if len(plain_name) <= _LONGEST else f"{plain_name[: _LONGEST - 1]}…"
        return f"{cut} ({self.note})" if self.note else cut


def draw_series(
    series: Mapping[str, Series], ax: Axes, *, joined: bool = True, most_numbers: int = 24
) -> None:
    """Draws each series at 1, 2, … (layers, attention heads), slightly shifted against each other.

    joined: by a line. most_numbers: that fit below the axes; where there are more places, every
    second or third is numbered.
    """
    n_places = max(len(one.values) for one in series.values())
    for number, (name, one) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * _APART
        style = one.style
        bars = ax.errorbar(
            [place + 1 + shift for place in range(len(one.values))],
            [math.nan if value is None else value for value in one.values],
            yerr=[width or 0.0 for width in one.half_widths],
            color=style.colour,
            marker=style.marker,
            linestyle=style.dash if joined else "none",
            elinewidth=1.2,
            capsize=2,
        )
        bars.lines[0].set(markersize=4.5, markerfacecolor=style.fill, linewidth=1)
        bars.set_label(name)
    ax.set_xlim(0.4, n_places + 0.6)
    ax.set_xticks(range(1, n_places + 1, math.ceil(n_places / most_numbers)))
    remove_frame(ax)


def ranking_height(n_means: int) -> float:
    """Inches of a ranking of so many names, with its title and its axis."""
    return 0.19 * n_means + 0.95


def label_width(means: Sequence[NamedMean]) -> float:
    """Inches that the names take on the left."""
    return LETTER_WIDTH * max(len(one.label) for one in means) + 0.15


def draw_ranking(means: Sequence[NamedMean], ax: Axes, *, has_zero_line: bool = False) -> None:
    """Draws the means below one another, the first on top, each next to its name.

    has_zero_line: for a ranking of differences, a line where two things are the same.
    """
    if has_zero_line:
        ax.axvline(0, color="#777777", linewidth=1, linestyle="--")
    for place, one in enumerate(means):
        if one.interval is not None:
            ax.plot(one.interval, [place, place], color=INK, linewidth=1.4)
        ax.plot([one.value], [place], "o", color=INK, markersize=5)
    ax.set_yticks(range(len(means)), [one.label for one in means], parse_math=False)
    ax.set_ylim(len(means) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    ax.set_axisbelow(True)
    remove_frame(ax)


def legend_above(ax: Axes) -> None:
    """Names of the series outside of the axes, where they cover nothing."""
    handles, labels = ax.get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0}
    ax.legend(handles, labels, frameon=False, fontsize=8, ncols=len(labels), **place)


def remove_frame(ax: Axes) -> None:
    """Small letters, and no frame where there is no axis."""
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
