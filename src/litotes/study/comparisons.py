"""Which systems of a study are compared, and how much they differ on the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from litotes.core.errors import UserError
from litotes.evaluation.significance import SIGNIFICANT, Difference, difference, holm
from litotes.study.plan import Experiment, format_value, label_value, label_values
from litotes.study.run_files import CellAnswers
from litotes.study.tables import ScoreTable

Tables = Mapping[str, Sequence[ScoreTable]]
"""The tables of every experiment, by its name."""


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same texts; `adjusted_p` is Holm's over all comparisons of the experiment.

    elsewhere: the other experiment that the baseline is from; None for a system of the same one.
    """

    system: str
    baseline: str
    task: str
    tested_on: str
    row: str
    column: str
    difference: Difference
    adjusted_p: float
    elsewhere: str | None = None

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT


@dataclass(frozen=True)
class CellPair:
    """Two systems' answers in the same cell of a table; `elsewhere` as in `Comparison`."""

    system: str
    baseline: str
    table: ScoreTable
    row: str
    column: str
    own: CellAnswers
    theirs: CellAnswers
    elsewhere: str | None = None

    def difference(self) -> Difference:
        if self.own.texts != self.theirs.texts:
            raise UserError(
                f"{self.system} and {self.baseline} were not tested on the same texts; they cannot"
                " be compared."
            )
        return difference(self.own.gold, self.own.answers, self.theirs.answers, self.own.n_classes)


def compare(experiment: Experiment, tables: Tables) -> tuple[Comparison, ...]:
    """Every pair that the experiment asks for, with Holm's correction over all of them together."""
    pairs = find_pairs(experiment, tables)
    differences = [pair.difference() for pair in pairs]
    adjusted = holm([one.p for one in differences])
    tested = zip(pairs, differences, adjusted, strict=True)
    return tuple(_comparison(pair, found, p) for pair, found, p in tested)


def _comparison(pair: CellPair, found: Difference, adjusted_p: float) -> Comparison:
    return Comparison(
        system=pair.system,
        baseline=pair.baseline,
        task=pair.table.matrix.task,
        tested_on=pair.table.tested_on,
        row=pair.row,
        column=pair.column,
        difference=found,
        adjusted_p=adjusted_p,
        elsewhere=pair.elsewhere,
    )


def find_pairs(experiment: Experiment, tables: Tables) -> list[CellPair]:
    """All cells that the experiment asks to compare."""
    return [*_within(experiment, tables[experiment.settings.name]), *_against(experiment, tables)]


def _within(experiment: Experiment, tables: Sequence[ScoreTable]) -> Iterator[CellPair]:
    """Systems that differ in the compared path alone, each with that of the first value."""
    path = experiment.settings.compare
    if path is None:
        return
    first = experiment.settings.grid[path][0]
    for table in tables:
        if path == experiment.settings.rows:
            yield from _rows_with_first(table, format_value(first))
        elif table.values[path] != first:
            yield from _tables_with_first(table, tables, path, first)


def _tables_with_first(
    table: ScoreTable, tables: Sequence[ScoreTable], path: str, first: Any
) -> Iterator[CellPair]:
    """A table with the one that has the first value of the path, and is otherwise the same."""
    wanted = {**table.values, path: first}, table.tested_on, table.matrix.task
    others = {key: value for key, value in table.values.items() if key != path}
    rest = f" ({label_values(others)})" if others else ""
    system = label_value(path, table.values[path]) + rest
    baseline = label_value(path, first) + rest
    for other in tables:
        if (dict(other.values), other.tested_on, other.matrix.task) == wanted:
            yield from _cell_by_cell(system, baseline, table, other)


def _rows_with_first(table: ScoreTable, first: str) -> Iterator[CellPair]:
    """Each row of a table with its first one."""
    for (row, column), own in table.answers.items():
        if row != first and (first, column) in table.answers:
            yield CellPair(row, first, table, row, column, own, table.answers[first, column])


def _against(experiment: Experiment, tables: Tables) -> Iterator[CellPair]:
    """Each table with the first of another experiment that has the same task and test."""
    name = experiment.settings.name
    for table in tables[name]:
        for other_name in experiment.settings.against:
            other = find_table(tables[other_name], table.matrix.task, table.tested_on)
            if other is not None:
                system, baseline = table.name_within(name), other.name_within(other_name)
                other = _row_for_all(other, table)
                yield from _cell_by_cell(system, baseline, table, other, elsewhere=other_name)


def _row_for_all(other: ScoreTable, table: ScoreTable) -> ScoreTable:
    """A table of a single row, with that row for each of another table's; others as they are."""
    if len(other.matrix.rows) != 1:
        return other
    (only,) = other.matrix.rows
    answers = {}
    for row, column in table.answers:
        if (only, column) in other.answers:
            answers[row, column] = other.answers[only, column]
    return replace(other, answers=answers)


def find_table(tables: Sequence[ScoreTable], task: str, tested_on: str) -> ScoreTable | None:
    """The first table of a task and test."""
    for table in tables:
        if (table.matrix.task, table.tested_on) == (task, tested_on):
            return table
    return None


def _cell_by_cell(
    system: str,
    baseline: str,
    table: ScoreTable,
    other: ScoreTable,
    *,
    elsewhere: str | None = None,
) -> Iterator[CellPair]:
    for (row, column), own in table.answers.items():
        if (row, column) in other.answers:
            theirs = other.answers[row, column]
            yield CellPair(system, baseline, table, row, column, own, theirs, elsewhere)
