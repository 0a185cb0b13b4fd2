"""A heatmap of coverage: every part against every part, with lines between the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litotes.core.figures import text_colour
from litotes.data.coverage import Coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INCHES = 0.5


def draw(coverage: Coverage, ax: Axes) -> Any:
    """Draws the matrix into the given axes and returns the image (for a colour bar)."""
    image = ax.imshow(coverage.matrix, cmap="YlGnBu", vmin=0, vmax=1)
    _label_axes(coverage.names, ax)
    for row, shares in enumerate(coverage.matrix):
        for column, share in enumerate(shares):
            colour = text_colour(image, share)
            ax.text(column, row, f"{share:.2f}", ha="center", va="center", color=colour, fontsize=8)
    _separate(coverage.groups, ax)
    return image


def _label_axes(names: tuple[str, ...], ax: Axes) -> None:
    places = range(len(names))
    ax.set_xticks(
        places,
        names,
        rotation=45,
        ha="right",
        rotation_mode="anchor",
        fontsize=9,
        parse_math=False,
    )
    ax.set_yticks(places, names, fontsize=9, parse_math=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def figure(coverage: Coverage) -> Figure:
    """The matrix with its title and its colour bar."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    side = _INCHES * len(coverage.names) + 2.4  # the names take the rest
    picture = Figure(figsize=(side + 0.6, side), layout="constrained")
    ax = picture.subplots()
    image = draw(coverage, ax)
    ax.set_title(
        f"Share of a row's {coverage.top:,} most frequent {coverage.by}\namong those of a column",
        fontsize=10,
        pad=10,
    )
    bar = picture.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
    bar.outline.set_visible(False)
    return picture


def _separate(groups: tuple[str, ...], ax: Axes) -> None:
    for place in range(1, len(groups)):
        if groups[place] != groups[place - 1]:
            ax.axhline(place - 0.5, color="white", linewidth=3)
            ax.axvline(place - 0.5, color="white", linewidth=3)
