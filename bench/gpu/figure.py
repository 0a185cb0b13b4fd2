"""A picture of the GPU's bench: texts a second of the opponents and of ours, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.figure import hide_frame, new_picture
from bench.lines import Line
from litotes.core.errors import UserError
from litotes.core.figures import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "hf-": "#777777",
    "naive-": "#CC79A7",
    "litotes-dense": "#0072B2",
    "litotes-pruned": "#009E73",
    "litotes-cascade": "#E69F00",
}
"""By the beginnings of lines' names, from the palette of Okabe and Ito."""


def speed_figure(by_model: Mapping[str, Sequence[Line]]) -> Figure:
    """A panel for each model that has lines, by its title, each on a scale of its own."""
    shown = {title: lines for title, lines in by_model.items() if lines}
    if not shown:
        raise UserError("These lines have no texts to draw: measure with `python -m bench gpu`.")
    most = max(len(lines) for lines in shown.values())
    picture = new_picture(5.0 * len(shown), 0.7 + 0.32 * most)
    axes = picture.subplots(1, len(shown), squeeze=False)[0]
    for ax, (title, lines) in zip(axes, shown.items(), strict=True):
        _draw_bars(ax, lines)
        ax.set_title(title, fontsize=11)
        ax.set_xlabel("texts a second")
    return picture


def _draw_bars(ax: Axes, lines: Sequence[Line]) -> None:
    for place, line in enumerate(lines):
        ax.barh(place, line.per_second, color=_colour(line.name), edgecolor=INK, linewidth=0.2)
        ax.text(line.per_second, place, f" {line.per_second:,.0f}", va="center", fontsize=8)
    ax.set_yticks(range(len(lines)), [line.name for line in lines], fontsize=8)
    ax.invert_yaxis()
    # room for the numbers
    ax.set_xlim(0, 1.2 * max(line.per_second for line in lines))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.locator_params(axis="x", nbins=5)
    hide_frame(ax)


def _colour(name: str) -> str:
    return next(colour for start, colour in COLOURS.items() if name.startswith(start))
