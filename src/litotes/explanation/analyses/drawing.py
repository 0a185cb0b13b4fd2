"""What the figures of all analyses share: axes placed in inches, heatmaps of attention heads, means
with their intervals.

Letters have known sizes here, so margins are known too; matplotlib would take seconds to find them
out for dozens of axes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.figures import INK, ON_LIGHT, hide_frame
from litotes.core.numbers import Floats
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

    def chart(
        self, box: Box, title: str = "", *, x: str = "", y: str = "", left: float = 0.65
    ) -> Axes:
        """Axes within a box that has to hold their title, numbers and labels as well; left: inches
        for what stands there.
        """
        ax = self.axes(
            Box(box.left + left, box.top + 0.3, box.width - left - 0.15, box.height - 0.8)
        )
        ax.set_title(title, fontsize=9, parse_math=False)
        ax.set_xlabel(x, fontsize=8)
        ax.set_ylabel(y, fontsize=8)
        ax.tick_params(labelsize=8)
        hide_frame(ax)
        return ax

    def ranking(
        self, box: Box, title: str, means: Sequence[NamedMean], *, x: str, zero: bool = False
    ) -> Axes:
        """Draws the means below one another, the first on top, each next to its name.

        zero: for a ranking of differences, a line where two things are the same.
        """
        longest = max((len(one.label) for one in means), default=0)
        ax = self.chart(box, title, x=x, left=LETTER_WIDTH * longest + 0.15)
        if zero:
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
        return ax


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


Place = tuple[int, int]


@dataclass(frozen=True)
class MapGroup:
    """Maps by their titles side by side, of one size, that share a scale and its colour bar.

    unit: of the numbers. low, high: where the numbers may end; without them at multiples of `step`.
    framed: by title the (layer, attention_head) that stand out, from 0.
    """

    tables: Mapping[str, Table]
    unit: str
    low: float | None = None
    high: float | None = None
    step: float = 0.1
    framed: Mapping[str, Collection[Place]] = field(default_factory=dict)

    @property
    def maps(self) -> Floats:
        """(map, layer, attention_head), NaN where there is no number."""
        return np.array(list(self.tables.values()), np.float64)

    @property
    def known(self) -> Floats:
        return self.maps[~np.isnan(self.maps)]

    @property
    def limits(self) -> tuple[float, float]:
        """Limits that hold every number of the maps, and never the same twice; rounding that lies
        beyond `low` and `high` does not move them.
        """
        known = self.known if self.known.size else np.array([self.low or 0.0])
        step = self.step
        bottom = floor(known.min() / step + _ROUNDING) * step
        top = ceil(known.max() / step - _ROUNDING) * step
        if self.low is not None:
            bottom = min(self.low, bottom)
        if self.high is not None:
            top = max(self.high, top)
        if top - bottom > step / 2:
            return bottom, top
        return (bottom - step, top) if top == self.high else (bottom, bottom + step)

    @property
    def map_size(self) -> tuple[float, float]:
        """Inches of a map across and down."""
        _, n_layers, n_heads = self.maps.shape
        return max(_CELL * n_heads, _NARROWEST), max(_CELL * n_layers, _LOWEST)

    @property
    def width(self) -> float:
        return len(self.tables) * (_LEFT + self.map_size[0]) + _GAP + _BAR + _BAR_LABELS

    @property
    def height(self) -> float:
        return _ABOVE + self.map_size[1] + _BELOW


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
    """Draws the maps with their colour bar, from that corner on.

    Layers and heads are counted from 1.
    """
    from matplotlib.patches import Rectangle

    (width, height), (low, high) = group.map_size, group.limits
    line: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 1.6, "clip_on": False}
    for number, (title, values) in enumerate(zip(group.tables, group.maps, strict=True)):
        box = Box(left + number * (_LEFT + width) + _LEFT, top + _ABOVE, width, height)
        ax = canvas.axes(box)
        # shines through where there is no number
        ax.patch.set(facecolor="white", hatch="//////", edgecolor="#AAAAAA")
        image = ax.imshow(
            values, cmap="YlGnBu", vmin=low, vmax=high, aspect="auto", interpolation="nearest"
        )
        for axis, n in zip((ax.yaxis, ax.xaxis), values.shape, strict=True):
            axis.set_ticks(range(n), [str(place + 1) for place in range(n)], fontsize=7)
        ax.tick_params(length=0, pad=2)
        note = " (hatched: none)" if np.isnan(values).any() else ""
        ax.set_xlabel(f"attention head{note}", fontsize=8, labelpad=2)
        ax.set_ylabel("" if number else "layer", fontsize=8, labelpad=2)
        ax.set_title(fill(title, int(width / LETTER_WIDTH)), fontsize=9, pad=4, parse_math=False)
        for layer, head in np.argwhere(values < 0):  # a dash, since print in grey has no hue
            ax.text(head, layer, "–", ha="center", va="center", fontsize=7, color=ON_LIGHT)
        for layer, head in group.framed.get(title, ()):
            ax.add_patch(Rectangle((head - 0.5, layer - 0.5), 1, 1, **line))
        ax.spines[:].set_visible(False)
    bar_box = Box(box.left + width + _GAP, box.top, _BAR, height)
    bar = canvas.figure.colorbar(image, cax=canvas.axes(bar_box))
    bar.set_label(fill(group.unit, int(height / 0.062)), fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


# Means with their intervals as marks: along the layers, or below one another by name.


@dataclass(frozen=True)
class MarkStyle:
    """The look that tells one kind of thing from others: its colour and, for print in grey, the
    form of its mark and whether that is filled.
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


Series = tuple[Sequence[Number], Sequence[Number]]
"""Means along an axis and half of their intervals; None where nothing could be measured."""


@dataclass(frozen=True)
class NamedMean:
    """A mean under its name, with its interval where there is one. note: stands behind the name."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    note: str = ""

    @classmethod
    def around(
        cls, name: str, value: float, half_width: Number, *, note: str = "", scale: float = 1.0
    ) -> NamedMean:
        """Makes one with an interval of that half width on either side."""
        ends = None
        if half_width is not None:
            ends = scale * (value - half_width), scale * (value + half_width)
        return cls(name, scale * value, ends, note)

    @property
    def label(self) -> str:
        """The name as it can be drawn: cut where it is long, and without characters that would turn
        or break the line.
        """
        plain_name = "".join(letter if letter.isprintable() else "▯" for letter in self.name)
        cut = plain_name if len(plain_name) <= _LONGEST else f"{plain_name[: _LONGEST - 1]}…"
        return f"{cut} ({self.note})" if self.note else cut


def draw_series(
    series: Mapping[str, Series],
    ax: Axes,
    *,
    joined: bool = True,
    most_numbers: int = 24,
    legend: bool = True,
) -> None:
    """Draws each series at 1, 2, … (layers, attention heads), slightly shifted against each other.

    joined: by a line. most_numbers: that fit below the axes; where there are more places, every
    second or third is numbered. legend: above the axes, where there are several series.
    """
    n_places = max(len(values) for values, _ in series.values())
    places = np.arange(1, n_places + 1)
    for number, (name, both) in enumerate(series.items()):
        values, widths = np.array(both, np.float64)
        style = KIND_STYLES.get(name, PLAIN)
        bars = ax.errorbar(
            places + (number - (len(series) - 1) / 2) * _APART,
            values,
            yerr=np.nan_to_num(widths),
            color=style.colour,
            marker=style.marker,
            linestyle=style.dash if joined else "none",
            elinewidth=1.2,
            capsize=2,
        )
        bars.lines[0].set(markersize=4.5, markerfacecolor=style.fill, linewidth=1)
        bars.set_label(name)
    ax.set_xlim(0.4, n_places + 0.6)
    ax.set_xticks(range(1, n_places + 1, ceil(n_places / most_numbers)))
    if legend and len(series) > 1:
        add_key(ax, ax, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def ranking_height(n_means: int) -> float:
    """Inches of a ranking of so many names, with its title and its axis."""
    return 0.19 * n_means + 0.95


def add_key(target: Axes | Figure, ax: Axes, *, ncols: int = 9, **place: Any) -> None:
    """Names what is drawn in `ax`, at a place where the names cover nothing."""
    handles, labels = ax.get_legend_handles_labels()
    target.legend(handles, labels, frameon=False, fontsize=8, ncols=ncols, **place)
