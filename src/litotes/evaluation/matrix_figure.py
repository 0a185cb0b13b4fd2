"""Heatmaps of cross matrices: macro-F1 and its interval in every cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litotes.core.figures import INCHES, Heatmap, draw_heatmap
from litotes.evaluation.cross_matrix import CrossMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def of_matrix(matrix: CrossMatrix) -> Heatmap:
    """Macro-F1 with its interval."""
    return Heatmap(
        f"{matrix.task} by {matrix.axis}, macro-F1",
        "trained on",
        matrix.rows,
        matrix.columns,
        {(cell.trained_on, cell.tested_on): cell.macro_f1 for cell in matrix.cells},
        {
            (cell.trained_on, cell.tested_on): f"{cell.interval[0]:.2f}–{cell.interval[1]:.2f}"
            for cell in matrix.cells
        },
    )


def figure(matrices: Sequence[CrossMatrix]) -> Figure:
    """All matrices side by side."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    width = INCHES * max(len(matrix.columns) for matrix in matrices) + 1.2
    height = INCHES * max(len(matrix.rows) for matrix in matrices) + 1.2
    picture = Figure(figsize=(width * len(matrices) + 1.0, height), layout="constrained")
    axes = picture.subplots(1, len(matrices), squeeze=False)[0]
    images = [
        draw_heatmap(of_matrix(matrix), ax) for matrix, ax in zip(matrices, axes, strict=True)
    ]
    bar = picture.colorbar(images[-1], ax=list(axes), shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    return picture
