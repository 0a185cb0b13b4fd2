"""Forest plots: estimates with their intervals one below another, a panel for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from litotes.core.figures import INK, add_legend, hide_frame, new_figure
from litotes.evaluation.significance import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Points:
    """The points in each row of a panel, in hundredths; None: there is none. shift: how far below
    the row's middle, so that two points do not cover each other.
    """

    label: str
    estimates: Sequence[Estimate | None]
    colour: str
    mark: str = "o"
    shift: float = 0.0


_NOTHING = (np.nan, np.nan, np.nan)

Panel = tuple[Sequence[str], Sequence[Points]]
"""The names of the rows and what stands in them."""


def draw_forest(panels: Mapping[str, Panel], *, what: str, width: float) -> Figure:
    """Draws the panels side by side, the first row at the top. what: what is measured; width: of a
    panel, in inches
    """
    n_rows = max(1, *(len(names) for names, _ in panels.values()))
    picture = new_figure(width * len(panels), 0.24 * n_rows + 1.5)
    axes = picture.subplots(1, len(panels), squeeze=False)[0]
    for (title, (names, points)), ax in zip(panels.items(), axes, strict=True):
        for one in points:
            # (row, value and ends); where nothing stands nothing is drawn
            found = 100 * np.array([own.numbers() if own else _NOTHING for own in one.estimates])
            if np.isnan(found).all():
                continue
            values, *ends = found.T
            places, margins = np.arange(len(found)) + one.shift, np.abs(ends - values)
            bars = ax.errorbar(values, places, xerr=margins, fmt=one.mark, color=one.colour)
            bars.lines[0].set(markersize=4.5, markeredgecolor=INK, markeredgewidth=0.6)
            bars.set_label(one.label)
        ax.axvline(0, color=INK, linewidth=0.6, linestyle="--")
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
        ax.set_ylim(max(len(names), 1) - 0.4, -0.6)
        ax.set_xlabel(what)
        ax.set_title(title, fontsize=11, parse_math=False)
        hide_frame(ax)
    add_legend(picture, axes, n_columns=3)
    return picture
