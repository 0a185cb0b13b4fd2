"""Heatmaps of cross matrices: the number and its interval in every cell, one colour scale for all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from litotes.evaluation.tables import CrossMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = 0.95
"""The side of a cell."""

LOWEST, HIGHEST = 0.3, 1.0
"""Of the colour scale: a collapsed model lies near 0.35 in balanced data, so the scale starts just under it."""


@dataclass(frozen=True)
class Heatmap:
    """What one heatmap shows: a number in each cell, and what stands below it in smaller print. {(row, column): …}"""

    title: str
    row_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], float]
    small: Mapping[tuple[str, str], str]


def of_matrix(matrix: CrossMatrix) -> Heatmap:
    """Macro-F1 with its interval."""
    return Heatmap(
        f"{matrix.task}, macro-F1",
        "trained on",
        matrix.rows,
        matrix.columns,
        {(cell.trained_on, cell.tested_on): cell.macro_f1 for cell in matrix.cells},
        {(cell.trained_on, cell.tested_on): f"{cell.interval[0]:.2f}–{cell.interval[1]:.2f}" for cell in matrix.cells},
    )


def draw(shown: Heatmap, ax: Axes) -> Any:
    """Draws one heatmap into the given axes and hands the image back (for a colour bar); a cell without a number stays white."""
    values = [[shown.values.get((row, column), float("nan")) for column in shown.columns] for row in shown.rows]
    image = ax.imshow(values, cmap="YlGnBu", vmin=LOWEST, vmax=HIGHEST)
    ax.set_xticks(range(len(shown.columns)), shown.columns, parse_math=False)
    ax.set_yticks(range(len(shown.rows)), shown.rows, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xlabel("tested on")
    ax.set_ylabel(shown.row_label)
    ax.set_title(shown.title, pad=8, fontsize=11, parse_math=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for place, row in enumerate(shown.rows):
        for number, column in enumerate(shown.columns):
            value, small = shown.values.get((row, column)), shown.small.get((row, column), "")
            _write(ax, (place, number), value, small, colour="#666666" if value is None else readable(image, value))
    return image


def figure(matrices: Sequence[CrossMatrix]) -> Figure:
    """All matrices side by side."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    width = INCHES * max(len(matrix.columns) for matrix in matrices) + 1.2
    height = INCHES * max(len(matrix.rows) for matrix in matrices) + 1.2
    picture = Figure(figsize=(width * len(matrices) + 1.0, height), layout="constrained")
    axes = picture.subplots(1, len(matrices), squeeze=False)[0]
    images = [draw(of_matrix(matrix), ax) for matrix, ax in zip(matrices, axes, strict=True)]
    bar = picture.colorbar(images[-1], ax=list(axes), shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    return picture


def rendered(picture: Figure, kind: str) -> bytes:
    """The figure as `svg` or `png`; the same figure gives the same bytes.

    What matplotlib's letters lack, many emoji among it, a browser finds elsewhere in an SVG; a PNG has a box there. Neither is news.
    """
    from matplotlib import rc_context

    target = BytesIO()
    with rc_context({"svg.hashsalt": "litotes", "svg.fonttype": "none"}), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        picture.savefig(target, format=kind, dpi=160, metadata=metadata, bbox_inches="tight", pad_inches=0.15)
    # a layout that is solved ends a hair to either side of 0, and -0 is written as such
    return re.sub(rb'(?<=[ "(,])-0(?=[ ",)\n])', b"0", target.getvalue()) if kind == "svg" else target.getvalue()


def _write(ax: Axes, place: tuple[int, int], value: float | None, small: str, *, colour: str) -> None:
    row, column = place
    if value is not None:
        ax.text(column, row - (0.08 if small else 0), f"{value:.3f}", ha="center", va="center", color=colour, fontsize=12)
    ax.text(column, row + (0.24 if value is not None else 0), small, ha="center", va="center", color=colour, fontsize=8, parse_math=False)


def readable(image: Any, value: float) -> str:
    """Black or white, whichever has the greater contrast with the cell (WCAG 2.2: they are equal at a luminance of 0.179)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in image.cmap(image.norm(value))[:3]]
    return "white" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] < 0.179 else "black"
