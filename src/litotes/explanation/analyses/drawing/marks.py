"""Means with their intervals as marks: along the layers, or below one another by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litotes.core.figures import INK
from litotes.explanation.analyses.drawing.canvas import LETTER_WIDTH
from litotes.explanation.analyses.means import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


STANDARD = MarkStyle("#009E73")
EFFECTIVE = MarkStyle("#0072B2", "s", filled=False, dash="--")
PLAIN = MarkStyle(INK)
"""Green and blue as in Sun and Marasović 2021, from the palette of Okabe and Ito."""

KIND_STYLES: Mapping[str, MarkStyle] = {"standard": STANDARD, "effective": EFFECTIVE}

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
        _draw_one_series(name, one, ax, shift=shift, joined=joined)
    ax.set_xlim(0.4, n_places + 0.6)
    ax.set_xticks(range(1, n_places + 1, math.ceil(n_places / most_numbers)))
    remove_frame(ax)


def _draw_one_series(name: str, series: Series, ax: Axes, *, shift: float, joined: bool) -> None:
    style = series.style
    bars = ax.errorbar(
        [place + 1 + shift for place in range(len(series.values))],
        [math.nan if value is None else value for value in series.values],
        yerr=[0.0 if width is None else width for width in series.half_widths],
        color=style.colour,
        marker=style.marker,
        linestyle=style.dash if joined else "none",
        elinewidth=1.2,
        capsize=2,
    )
    bars.lines[0].set(markersize=4.5, markerfacecolor=style.fill, linewidth=1)
    bars.set_label(name)


def ranking_height(n_means: int) -> float:
    """Inches of a ranking of so many names, with its title and its axis."""
    return 0.19 * n_means + 0.95


def label_width(means: Sequence[NamedMean]) -> float:
    """Inches that the names take on the left."""
    return LETTER_WIDTH * max(len(one.label) for one in means) + 0.15


def draw_ranking(means: Sequence[NamedMean], ax: Axes, *, style: MarkStyle = PLAIN) -> None:
    """Draws the means below one another, the first on top, each next to its name."""
    for place, one in enumerate(means):
        if one.interval is not None:
            ax.plot(one.interval, [place, place], color=style.colour, linewidth=1.4)
        [mark] = ax.plot([one.value], [place], style.marker, color=style.colour)
        mark.set(markersize=5, markerfacecolor=style.fill)
    ax.set_yticks(range(len(means)), [one.label for one in means], parse_math=False)
    ax.set_ylim(len(means) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    ax.set_axisbelow(True)
    remove_frame(ax)


def draw_zero_line(ax: Axes) -> None:
    """Where two things are the same; upright, for a ranking of differences."""
    ax.axvline(0, color="#777777", linewidth=1, linestyle="--")


def legend_above(ax: Axes) -> None:
    """Names of the series outside of the axes, where they cover nothing."""
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles,
        labels,
        frameon=False,
        fontsize=8,
        ncols=len(labels),
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0,
    )


def remove_frame(ax: Axes) -> None:
    """Small letters, and no frame where there is no axis."""
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
