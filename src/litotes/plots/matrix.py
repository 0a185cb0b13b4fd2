"""Heatmaps of cross matrices: the number and its interval in every cell, one colour scale for all."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from litotes.evaluation.tables import CrossMatrix, MatrixCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOWEST, HIGHEST = 0.3, 1.0
"""Of the colour scale: a collapsed model lies near 0.35 in balanced data, so the scale starts just under it."""


def draw(matrix: CrossMatrix, ax: Axes) -> Any:
    """Draws one matrix into the given axes and hands the image back (for a colour bar)."""
    found = [[matrix.find(row, column) for column in matrix.columns] for row in matrix.rows]
    values = [[float("nan") if cell is None else cell.macro_f1 for cell in row] for row in found]
    image = ax.imshow(values, cmap="YlGnBu", vmin=LOWEST, vmax=HIGHEST)
    ax.set_xticks(range(len(matrix.columns)), matrix.columns, parse_math=False)
    ax.set_yticks(range(len(matrix.rows)), matrix.rows, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xlabel("tested on")
    ax.set_ylabel("trained on")
    ax.set_title(f"{matrix.task}, macro-F1", pad=10, parse_math=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for row, cells in enumerate(found):
        for column, cell in enumerate(cells):
            if cell is not None:
                _write(ax, cell, (row, column))
    return image


def figure(matrices: Sequence[CrossMatrix]) -> Figure:
    """All matrices side by side."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    width = 0.95 * max(len(matrix.columns) for matrix in matrices) + 1.2
    height = 0.95 * max(len(matrix.rows) for matrix in matrices) + 1.2
    picture = Figure(figsize=(width * len(matrices) + 1.0, height), layout="constrained")
    axes = picture.subplots(1, len(matrices), squeeze=False)[0]
    images = [draw(matrix, ax) for matrix, ax in zip(matrices, axes, strict=True)]
    bar = picture.colorbar(images[-1], ax=list(axes), shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    return picture


def rendered(picture: Figure, kind: str) -> bytes:
    """The figure as `svg` or `png`; the same figure gives the same bytes."""
    from matplotlib import rc_context

    target = BytesIO()
    with rc_context({"svg.hashsalt": "litotes", "svg.fonttype": "none"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        picture.savefig(target, format=kind, dpi=160, metadata=metadata, bbox_inches="tight", pad_inches=0.15)
    return target.getvalue()


def _write(ax: Axes, cell: MatrixCell, place: tuple[int, int]) -> None:
    row, column = place
    colour = "white" if cell.macro_f1 > 0.72 else "black"  # dark cells begin there in this colour map
    low, high = cell.interval
    ax.text(column, row - 0.08, f"{cell.macro_f1:.3f}", ha="center", va="center", color=colour, fontsize=12)
    ax.text(column, row + 0.24, f"{low:.2f}–{high:.2f}", ha="center", va="center", color=colour, fontsize=8)
