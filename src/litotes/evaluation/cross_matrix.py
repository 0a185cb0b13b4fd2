"""Tables of scores: a row is what models were trained on (or how), a column what they were tested
on.

With several seeds a cell is the mean over the seeds, and its interval covers both the choice of
texts (bootstrap) and the choice of seeds (Student's t, which is wide for few of them;
`intervals.py`). With one seed it covers the choice of texts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.figures import INCHES, Heatmap, draw_heatmap
from litotes.core.html import row, table
from litotes.core.numbers import Counts, confusion, macro_f1
from litotes.core.text import one_line
from litotes.evaluation.scores import constant
from litotes.evaluation.significance import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class MatrixCell:
    """Trained here, tested there: macro-F1, mean over seeds, with its 95 % interval.

    majority: macro-F1 of always answering the commonest label of the tested texts.
    """

    trained_on: str
    tested_on: str
    n: int
    macro_f1: float
    interval: tuple[float, float]
    majority: float
    by_seed: tuple[float, ...]
    n_collapsed: int

    def __repr__(self) -> str:
        return one_line(self, place=self.place, n=self.n, macro_f1=self.macro_f1)

    @property
    def place(self) -> tuple[str, str]:
        """Its row and its column."""
        return self.trained_on, self.tested_on

    @property
    def has_one_class(self) -> bool:
        """A constant answer is right everywhere, so there is nothing else to find."""
        return self.majority == 1.0

    @property
    def is_above_majority(self) -> bool:
        """Whether the models are clearly better than the most frequent label."""
        return self.interval[0] > self.majority

    def holds(self, score: float) -> bool:
        """Whether another's score lies inside the interval."""
        return self.interval[0] <= score <= self.interval[1]

    def text(self) -> str:
        """The score with its interval."""
        return f"{self.macro_f1:.3f} ({self.interval[0]:.2f}–{self.interval[1]:.2f})"


@dataclass(frozen=True)
class CrossMatrix:
    """One task's table, cells row by row; a cell whose run failed is not there.

    `axis` says what the columns are.
    """

    task: str
    axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[MatrixCell, ...]

    def __repr__(self) -> str:
        n_rows, n_columns = len(self.rows), len(self.columns)
        return one_line(
            self,
            task=self.task,
            axis=self.axis,
            n_rows=n_rows,
            n_columns=n_columns,
            n_cells=len(self.cells),
        )

    def find(self, row: str, column: str) -> MatrixCell | None:
        """The cell; None when its run failed."""
        for cell in self.cells:
            if cell.place == (row, column):
                return cell
        return None

    def cell(self, row: str, column: str) -> MatrixCell:
        """The cell that is known to be there."""
        found = self.find(row, column)
        assert found is not None
        return found

    @property
    def mean(self) -> float:
        """Mean of all cells."""
        return _mean([cell.macro_f1 for cell in self.cells])

    @property
    def at_home(self) -> float | None:
        """Mean of the cells tested where they were trained; None where rows are no columns."""
        return self._mean_where(home=True)

    @property
    def elsewhere(self) -> float | None:
        """Mean of the others."""
        return self._mean_where(home=False)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "mean": self.mean,
            "at_home": self.at_home,
            "elsewhere": self.elsewhere,
        }

    def _repr_html_(self) -> str:
        """In a notebook: macro-F1 with its interval in every cell."""
        rows = []
        for name in self.rows:
            cells = [self.find(name, column) for column in self.columns]
            rows.append(row([name], ["–" if cell is None else cell.text() for cell in cells]))
        caption = f"{self.task}: macro-F1 (95 % interval)"
        return table(("trained on \\ tested on", *self.columns), rows, caption=caption)

    def _mean_where(self, *, home: bool) -> float | None:
        if not set(self.rows) & set(self.columns):
            return None
        cells = [cell for cell in self.cells if (cell.trained_on == cell.tested_on) == home]
        return _mean([cell.macro_f1 for cell in cells]) if cells else None


def make_cell(
    trained_on: str,
    tested_on: str,
    gold: Counts,
    predicted: Counts,
    n_classes: int,
    *,
    seed: int = 0,
) -> MatrixCell:
    """The cell of one or several models' answers. gold (text,), predicted (seed, text)"""
    counts = np.stack([confusion(gold, row, n_classes) for row in predicted])
    by_seed = macro_f1(counts)
    several_classes = (counts[0].sum(1) > 0).sum() > 1
    return MatrixCell(
        trained_on=trained_on,
        tested_on=tested_on,
        n=len(gold),
        macro_f1=float(by_seed.mean()),
        interval=mean_interval(gold, predicted, n_classes, seed=seed),
        majority=float(macro_f1(constant(counts[0].sum(1)))),
        by_seed=tuple(float(value) for value in by_seed),
        n_collapsed=int(sum(several_classes and len(set(row)) == 1 for row in predicted.tolist())),
    )


def collapses(matrices: Sequence[CrossMatrix]) -> list[str]:
    """A warning for every cell with models that give one answer to everything."""
    warnings: list[str] = []
    for matrix in matrices:
        collapsed = [cell for cell in matrix.cells if cell.n_collapsed]
        warnings += [_collapse_warning(matrix, cell) for cell in collapsed]
    return warnings


def _collapse_warning(matrix: CrossMatrix, cell: MatrixCell) -> str:
    trained_on = "" if matrix.at_home is None else "trained on "
    return (
        f"COLLAPSED: {trained_on}{cell.trained_on}, tested on {cell.tested_on}, {matrix.task}:"
        f" {cell.n_collapsed} of {len(cell.by_seed)} models give one answer to every text. Their"
        " score is that of a constant."
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


# Heatmaps of cross matrices: macro-F1 and its interval in every cell.


def heatmap_of(matrix: CrossMatrix) -> Heatmap:
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


def draw_matrices(matrices: Sequence[CrossMatrix]) -> Figure:
    """All matrices side by side."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    width = INCHES * max(len(matrix.columns) for matrix in matrices) + 1.2
    height = INCHES * max(len(matrix.rows) for matrix in matrices) + 1.2
    picture = Figure(figsize=(width * len(matrices) + 1.0, height), layout="constrained")
    axes = picture.subplots(1, len(matrices), squeeze=False)[0]
    images = [
        draw_heatmap(heatmap_of(matrix), ax) for matrix, ax in zip(matrices, axes, strict=True)
    ]
    bar = picture.colorbar(images[-1], ax=list(axes), shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    return picture
