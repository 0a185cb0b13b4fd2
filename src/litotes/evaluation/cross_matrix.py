"""Tables of scores: a row is what models were trained on (or how), a column what they were tested
on.

With several seeds a cell is the mean over the seeds, and its interval covers both the choice of
texts (bootstrap) and the choice of seeds (Student's t, which is wide for few of them;
`significance.py`). With one seed it covers the choice of texts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from litotes.core.figures import Heatmap
from litotes.core.numbers import Counts, confusion, macro_f1
from litotes.core.pages import render
from litotes.core.text import one_line
from litotes.evaluation.scores import Interval, Json, Result, majority_f1
from litotes.evaluation.significance import mean_interval

Place = tuple[str, str]
"""Row and column."""


@dataclass(frozen=True, repr=False)
class MatrixCell(Result):
    """Trained here, tested there: macro-F1, mean over seeds, with its 95 % interval.

    majority: macro-F1 of always answering the most frequent label of the tested texts.
    """

    shown = ("place", "n", "macro_f1")
    trained_on: str
    tested_on: str
    n: int
    macro_f1: float
    interval: Interval
    majority: float
    by_seed: tuple[float, ...]
    n_collapsed: int

    @property
    def place(self) -> Place:
        return self.trained_on, self.tested_on

    @property
    def has_one_class(self) -> bool:
        """A constant answer is right everywhere, so there is nothing else to find."""
        return self.majority == 1.0

    @property
    def is_above_majority(self) -> bool:
        """True if the models are clearly better than the most frequent label."""
        return self.interval[0] > self.majority

    def holds(self, score: float) -> bool:
        """Tells whether another's score lies inside the interval."""
        return self.interval[0] <= score <= self.interval[1]

    def text(self) -> str:
        """The score with its interval."""
        return f"{self.macro_f1:.3f} ({self.interval[0]:.2f}–{self.interval[1]:.2f})"


@dataclass(frozen=True)
class CrossMatrix(Result):
    """One task's table, cells row by row; a cell whose run failed is not there.

    `axis` says what the columns are.
    """

    task: str
    axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[MatrixCell, ...]

    def __repr__(self) -> str:
        sizes = {"n_rows": len(self.rows), "n_columns": len(self.columns)}
        return one_line(self, task=self.task, axis=self.axis, **sizes, n_cells=len(self.cells))

    def find(self, row: str, column: str) -> MatrixCell | None:
        """The cell; None when its run failed."""
        return next((cell for cell in self.cells if cell.place == (row, column)), None)

    @property
    def mean(self) -> float:
        """Mean of all cells."""
        return float(np.mean([cell.macro_f1 for cell in self.cells])) if self.cells else np.nan

    @property
    def at_home(self) -> float | None:
        """Mean of the cells tested where they were trained; None where rows are no columns."""
        return self._mean_where(home=True)

    @property
    def elsewhere(self) -> float | None:
        """Mean of the others."""
        return self._mean_where(home=False)

    def _mean_where(self, *, home: bool) -> float | None:
        own = [one.macro_f1 for one in self.cells if (one.trained_on == one.tested_on) == home]
        return float(np.mean(own)) if own and set(self.rows) & set(self.columns) else None

    def as_json(self) -> Json:
        means = {name: getattr(self, name) for name in ("mean", "at_home", "elsewhere")}
        return super().as_json() | means

    def _repr_html_(self) -> str:
        """Shows in a notebook macro-F1 with its interval in every cell."""
        rows = []
        for name in self.rows:
            cells = [self.find(name, column) for column in self.columns]
            rows.append(([name], ["–" if cell is None else cell.text() for cell in cells]))
        caption = f"{self.task}: macro-F1 (95 % interval)"
        head = ("trained on \\ tested on", *self.columns)
        return render("core/notebook_table.html", head=head, rows=rows, caption=caption)

    def collapses(self) -> Iterator[str]:
        """A warning for every cell with models that give one answer to everything."""
        trained_on = "" if self.at_home is None else "trained on "
        for cell in self.cells:
            if cell.n_collapsed:
                yield (
                    f"COLLAPSED: {trained_on}{cell.trained_on}, tested on {cell.tested_on},"
                    f" {self.task}: {cell.n_collapsed} of {len(cell.by_seed)} models give one"
                    " answer to every text. Their score is that of a constant."
                )

    def heatmap(
        self, title: str = "", *, row_label: str = "trained on", small: Mapping[Place, str] = {}
    ) -> Heatmap:
        """Macro-F1 with its interval in every cell. small: what stands in cells that have none."""
        intervals = {
            cell.place: f"{cell.interval[0]:.2f}–{cell.interval[1]:.2f}" for cell in self.cells
        }
        return Heatmap(
            title or f"{self.task} by {self.axis}, macro-F1",
            row_label,
            self.rows,
            self.columns,
            {cell.place: cell.macro_f1 for cell in self.cells},
            {**small, **intervals},
        )


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
    by_seed = macro_f1(np.stack([confusion(gold, row, n_classes) for row in predicted]))
    by_label = np.bincount(gold, minlength=n_classes)
    is_constant = np.ptp(predicted, axis=1) == 0  # (seed,)
    return MatrixCell(
        trained_on=trained_on,
        tested_on=tested_on,
        n=len(gold),
        macro_f1=float(by_seed.mean()),
        interval=mean_interval(gold, predicted, n_classes, seed=seed),
        majority=majority_f1(by_label),
        by_seed=tuple(by_seed.tolist()),
        n_collapsed=int(is_constant.sum()) if np.count_nonzero(by_label) > 1 else 0,
    )
