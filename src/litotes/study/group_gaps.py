"""Are a study's models worse for some of the columns they were tested on?

As `evaluate --by` asks it of one model (`evaluation/gaps.py`), with means over seeds: each column
is compared with all texts of the other columns of its table, for the models of every row, and for
those of all rows together. Holm's correction is over all tests of an experiment that take a table's
rows together, and apart from these over those of single rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from litotes.data.labels import annotator_kappa
from litotes.evaluation.gaps import FEWEST, Answered, Gap, Group, Spread
from litotes.evaluation.significance import correct
from litotes.study.tables import ScoreTable

ALL_ROWS = "all rows"


@dataclass(frozen=True, eq=False)  # known by itself
class RowGaps:
    """The groups of one row's models; of all models of a table where `row` is ALL_ROWS."""

    table: str
    row: str
    groups: tuple[Group, ...]
    gaps: tuple[Gap, ...]
    spread: Spread | None


def find_group_gaps(tables: Sequence[ScoreTable]) -> tuple[RowGaps, ...]:
    """Finds the gaps of all tables of an experiment; a table with a single column has none."""
    found: list[RowGaps] = []
    for table in tables:
        names = [row for row in table.matrix.rows if row not in table.failed]
        if len(names) > 1:
            found += _row_gaps(table, ALL_ROWS, names)
        for name in names:
            found += _row_gaps(table, name, [name])
    leading = leading_rows(found)
    corrected: dict[RowGaps, RowGaps] = {}
    for rows in (leading, [row for row in found if row not in leading]):
        gaps = iter(correct([gap for row in rows for gap in row.gaps]))
        corrected |= {row: replace(row, gaps=tuple(islice(gaps, len(row.gaps)))) for row in rows}
    return tuple(corrected[row] for row in found)


def leading_rows(rows: Sequence[RowGaps]) -> list[RowGaps]:
    """Selects of every table all rows together, or its only row."""
    pooled = {row.table for row in rows if row.row == ALL_ROWS}
    return [row for row in rows if row.row == ALL_ROWS or row.table not in pooled]


def _row_gaps(table: ScoreTable, name: str, rows: Sequence[str]) -> Iterator[RowGaps]:
    """Measures the gaps of some rows' models, where two columns have at least FEWEST texts."""
    by_column = {}
    for column in table.matrix.columns:
        cells = [table.answers[row, column] for row in rows if (row, column) in table.answers]
        if len(cells) == len(rows) and len(cells[0].gold) >= FEWEST:
            by_column[column] = cells
    if len(by_column) < 2:
        return
    by_row = list(zip(*by_column.values(), strict=True))
    answers = [np.concatenate([own.answers for own in cells], axis=1) for cells in by_row]
    sure = [np.concatenate([own.probability for own in cells], axis=1) for cells in by_row]
    golds, task = [own.gold for own in by_row[0]], table.matrix.task
    whole = Answered(np.concatenate(golds), np.stack(answers), np.stack(sure), by_row[0][0].labels)
    column_of = np.repeat(list(by_column), [len(gold) for gold in golds])  # (text,)
    parts = {column: column_of == column for column in by_column}
    people = {column: annotator_kappa(table.corpus, task, column) for column in by_column}
    groups, spreads, gaps = whole.by_group((task, table.matrix.axis), parts, people)
    yield RowGaps(table.title, name, tuple(groups), tuple(gaps), next(iter(spreads), None))
