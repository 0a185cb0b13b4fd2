"""A heatmap: a number in every cell, what stands below it in smaller print, one colour scale for
all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litotes.report.figure import text_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCHES = 0.95
"""The side of a cell."""

LOWEST, HIGHEST = 0.3, 1.0
"""Of the colour scale: a collapsed model lies near 0.35 in balanced data, so the scale starts just
under it.
"""


@dataclass(frozen=True)
class Heatmap:
    """What one heatmap shows: a number in each cell, and what stands below it in smaller print.
    {(row, column): …}
    """

    title: str
    row_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], float]
    small: Mapping[tuple[str, str], str]


def draw(shown: Heatmap, ax: Axes) -> Any:
    """Draws one heatmap into the given axes; returns the image, for a colour bar. A cell without a
    number stays white.
    """
    values = [
        [shown.values.get((row, column), float("nan")) for column in shown.columns]
        for row in shown.rows
    ]
    image = ax.imshow(values, cmap="YlGnBu", vmin=LOWEST, vmax=HIGHEST)
    _label_axes(shown, ax)
    for place, row in enumerate(shown.rows):
        for number, column in enumerate(shown.columns):
            value, small = shown.values.get((row, column)), shown.small.get((row, column), "")
            colour = "#666666" if value is None else text_colour(image, value)
            _write(ax, (place, number), value, small, colour=colour)
    return image


def _label_axes(shown: Heatmap, ax: Axes) -> None:
    ax.set_xticks(range(len(shown.columns)), shown.columns, parse_math=False)
    ax.set_yticks(range(len(shown.rows)), shown.rows, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xlabel("tested on")
    ax.set_ylabel(shown.row_label)
    ax.set_title(shown.title, pad=8, fontsize=11, parse_math=False)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _write(
    ax: Axes, place: tuple[int, int], value: float | None, small: str, *, colour: str
) -> None:
    row, column = place
    centred: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
    if value is not None:
        above = 0.08 if small else 0
        ax.text(column, row - above, f"{value:.3f}", fontsize=12, **centred)
    below = 0.24 if value is not None else 0
    ax.text(column, row + below, small, fontsize=8, parse_math=False, **centred)
