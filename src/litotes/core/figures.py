"""Figures: a canvas, what several figures share (points with intervals, heatmaps, a plain frame),
and files whose bytes are the same for the same figure.

matplotlib takes half a second to import, so it is imported here alone and when something is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from litotes.core.storage import write_bytes, write_json
from litotes.core.text import harmless

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

BAR, GAP, INK = "#56B4E9", "#D55E00", "#222222"
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart."""

ON_LIGHT = "#111111"
"""The colour of letters on a light cell. Not quite black: what is black turns light on a dark page,
cells and their letters stay as they are.
"""

_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, which a label may hold and XML may not, and those that turn the direction."""


def new_figure(width: float, height: float) -> Figure:
    """Makes an empty figure of so many inches, whose parts keep clear of one another."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def render_figure(picture: Figure, kind: str) -> bytes:
    """Renders a figure as `svg` or `png`; the same figure gives the same bytes.

    Glyphs that matplotlib's font lacks, many emoji among them, a browser finds elsewhere in an SVG;
    a PNG has a box there. Neither needs a warning.
    """
    from matplotlib import rc_context

    target = BytesIO()
    with rc_context({"svg.hashsalt": "litotes", "svg.fonttype": "none"}), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        picture.savefig(
            target, format=kind, dpi=160, metadata=metadata, bbox_inches="tight", pad_inches=0.15
        )
    content = target.getvalue()
    if kind == "svg":
        content = _NOT_XML.sub(lambda found: harmless(found[0]), content.decode()).encode()
        # a layout that is solved ends a hair to either side of 0, and -0 is written as such
        content = re.sub(rb'(?<=[ "(,])-0(?=[ ",)\n])', b"0", content)
    return content


def save_figure(stem: Path, figure: Figure, content: Any, *, with_png: bool = True) -> bytes:
    """Writes STEM.svg, STEM.png and, in STEM.json, the numbers they show; returns the SVG."""
    svg = render_figure(figure, "svg")
    write_bytes(stem.with_name(f"{stem.name}.svg"), svg)
    if with_png:
        write_bytes(stem.with_name(f"{stem.name}.png"), render_figure(figure, "png"))
    write_json(stem.with_name(f"{stem.name}.json"), content)
    return svg


def hide_frame(ax: Axes) -> None:
    """Leaves the two axes that have numbers."""
    ax.spines[["top", "right"]].set_visible(False)


def add_legend(picture: Figure, axes: Iterable[Axes], *, n_columns: int) -> None:
    """Puts one legend below all axes; a label that several things have is named once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        entries |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    picture.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
        fontsize=8,
    )


# Points with their intervals


@dataclass(frozen=True)
class BarStyle:
    """The style of some points.

    shift: printer's points to the side, for those that would cover one another.
    """

    label: str
    colour: str
    fill: str
    shift: float = 0.0


def draw_bars(
    ax: Axes,
    places: Sequence[float],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    style: BarStyle,
) -> None:
    """Draws values with their intervals at these places of the axis."""
    # drawn from the point to the interval's ends, which need not lie on both sides of it
    ends = list(zip(values, intervals, strict=True))
    below = [max(value - low, 0) for value, (low, _) in ends]
    above = [max(high - value, 0) for value, (_, high) in ends]
    bars = ax.errorbar(
        places,
        values,
        yerr=[below, above],
        fmt="o",
        color=style.colour,
        elinewidth=1.4,
        capsize=3,
        transform=shift_points(ax, style.shift),
    )
    bars.lines[0].set(markersize=7, markerfacecolor=style.fill, markeredgecolor=style.colour)
    bars.set_label(style.label)
    for place, (value, interval) in zip(places, ends, strict=True):
        # what is shifted does not count by itself
        ax.update_datalim([(place, end) for end in (*interval, value)])
    ax.autoscale_view()


def shift_points(ax: Axes, shift: float) -> Transform:
    """Places of the data, a few printer's points to the side: the numbers on the axis stay true."""
    from matplotlib.transforms import ScaledTranslation

    assert ax.figure is not None
    return ax.transData + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)


# Heatmaps: a number in every cell, what stands below it in smaller print, one colour scale for all

INCHES = 0.95
"""The side of a cell."""

_NARROW = 4.1
"""Inches across that a phone shows without making the letters smaller."""

_FEWEST_INCHES = 0.4
"""Inches of the smallest cell in which two decimals can be read."""

_ROOMY = 0.8
"""Inches of a cell that holds three decimals, and what stands below them."""

LETTER = 0.085
"""Inches of a letter in names and titles."""

_LONGEST = 14  # letters of a name in a line, where cells are small


@dataclass(frozen=True)
class Heatmap:
    """The content of one heatmap: a number in each cell, and what stands below it in small print.
    {(row, column): …}
    """

    title: str
    row_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], float]
    small: Mapping[tuple[str, str], str]


def draw_heatmap(shown: Heatmap, ax: Axes, *, inches: float = INCHES) -> Any:
    """Draws one heatmap into the given axes; returns the image, for a colour bar. A cell without a
    number stays empty. inches: the side of a cell; a small one has two decimals and nothing else.
    """
    values = [
        [shown.values.get((row, column), float("nan")) for column in shown.columns]
        for row in shown.rows
    ]
    image = ax.imshow(values, cmap="YlGnBu", vmin=0, vmax=1)
    _label_axes(shown, ax, inches)
    for place, row in enumerate(shown.rows):
        for number, column in enumerate(shown.columns):
            value, small = shown.values.get((row, column)), shown.small.get((row, column), "")
            lines = [(0.0, small, 8)]  # (how far below the middle, text, size)
            if inches < _ROOMY:
                why = (small.replace(" ", "\n"), 6)
                lines = [(0.0, *(why if value is None else (f"{value:.2f}", 9)))]
            elif value is not None:
                lines = [(-0.08 if small else 0.0, f"{value:.3f}", 12), (0.24, small, 8)]
            colour = "#666666" if value is None else text_colour(image, value)
            centred: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
            for below, text, size in lines:
                ax.text(number, place + below, text, fontsize=size, parse_math=False, **centred)
    return image


def text_colour(image: Any, value: float) -> str:
    """Almost black, or white, whichever has the greater contrast with the cell (WCAG 2.2: they are
    equal at a luminance of 0.179).
    """
    red, green, blue = (_linear(channel) for channel in image.cmap(image.norm(value))[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "white" if luminance < 0.179 else ON_LIGHT


def _linear(channel: float) -> float:
    """From sRGB."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def add_colour_bar(picture: Figure, image: Any, axes: Iterable[Axes], **place: Any) -> None:
    """One scale for all heatmaps: any image stands for the others."""
    bar = picture.colorbar(image, ax=list(axes), pad=0.02, **place)
    bar.set_label("macro-F1")
    bar.outline.set_visible(False)


def stacked_figure(heatmaps: Sequence[Heatmap]) -> Figure:
    """Draws the heatmaps one below another with their colour bar at the end, for a phone."""
    inches = min(_cell_inches(one) for one in heatmaps)
    n_columns = max(len(one.columns) for one in heatmaps)
    width = max(_NARROW, inches * n_columns + _names_inches(heatmaps))
    heights = [_stacked_height(one, inches) for one in heatmaps]
    picture = new_figure(width, sum(heights) + 0.6)
    picture.set_layout_engine("constrained", hspace=0.08)
    axes = picture.subplots(len(heatmaps), 1, squeeze=False, height_ratios=heights)[:, 0]
    for one, ax in zip(heatmaps, axes, strict=True):
        image = draw_heatmap(one, ax, inches=inches)
        title = fill(" ".join(one.title.split()), int(width / LETTER) - 6)
        ax.set_title(title, pad=8, fontsize=11, parse_math=False)
    add_colour_bar(picture, image, axes, orientation="horizontal", aspect=24)
    return picture


def _cell_inches(shown: Heatmap) -> float:
    """As much as a phone's width leaves to a cell."""
    room = (_NARROW - _names_inches([shown])) / len(shown.columns)
    return max(_FEWEST_INCHES, min(INCHES, room))


def _names_inches(heatmaps: Sequence[Heatmap]) -> float:
    """Across, of the names of the rows and their label."""
    lines = [line for one in heatmaps for name in one.rows for line in _lines(name)]
    return LETTER * max(map(len, lines)) + 0.5


def _stacked_height(shown: Heatmap, inches: float) -> float:
    """With its title, the names of the columns and their label."""
    names = [LETTER * len(line) for name in shown.columns for line in _lines(name)]
    upright = 0.2 * max(len(_lines(name)) for name in shown.columns)
    below = max(names) if max(names) > inches else upright
    return inches * len(shown.rows) + below + 0.9


def _lines(name: str) -> list[str]:
    """The name, broken between words where it is long."""
    return wrap(name, _LONGEST, break_long_words=False, break_on_hyphens=False) or [""]


def _label_axes(shown: Heatmap, ax: Axes, inches: float) -> None:
    """Names of columns are broken into lines, and stand upright where even a word is too wide."""
    columns = [wrap_to(name, inches) for name in shown.columns]
    longest = max((len(line) for name in columns for line in name.split("\n")), default=0)
    rotation = 90 if longest * LETTER > inches else 0
    if rotation:
        columns = ["\n".join(_lines(name)) for name in shown.columns]
    rows = (
        list(shown.rows) if inches == INCHES else ["\n".join(_lines(name)) for name in shown.rows]
    )
    ax.set_xticks(range(len(columns)), columns, rotation=rotation, parse_math=False)
    ax.set_yticks(range(len(rows)), rows, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xlabel("tested on")
    ax.set_ylabel(shown.row_label)
    ax.set_title(shown.title, pad=8, fontsize=11, parse_math=False)
    ax.spines[:].set_visible(False)


def wrap_to(name: str, inches: float) -> str:
    """Breaks the name into lines of so many inches, words and hyphens kept together."""
    n_letters = max(1, int(inches / LETTER))
    return "\n".join(wrap(name, n_letters, break_long_words=False, break_on_hyphens=False))
