"""Tables and their answers: which columns are read and kept, and the rows that are written, as CSV,
JSON lines or Parquet.

rows of a table  →  InputRow: what is kept of each, and what the model is asked
                 →  AnsweredRows: a chunk of them with its Answers  →  lines, or an Arrow table
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from io import StringIO
from itertools import compress, islice, tee
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.numbers import counted
from litotes.core.registry import pick
from litotes.core.storage import Target, find_target
from litotes.core.text import guard_formula
from litotes.core.values import BadText, Task
from litotes.data.inspection import find_text_column
from litotes.data.tables import column_names, read_rows
from litotes.data.tables.rows import Row, as_text, replace_characters
from litotes.prediction.answers import (
    BAD_ROWS,
    STRING,
    Answers,
    Column,
    answers_as_json,
    make_columns,
)

if TYPE_CHECKING:
    from litotes.prediction.predictor import Asked, Predictor

FORMATS = ("parquet", "jsonl", "csv")
ROWS_PER_PART = 5000
"""What is lost when a worker dies, at most: half a minute on one core.

Smaller parts only make more files.
"""
PREFIX = "predicted_"
"""Before the names of the answers' columns, where the table has such names itself."""
_N_PROBLEMS = 3
"""Problems that are told one by one; more are only counted."""


@dataclass(frozen=True)
class TableRequest:
    """A table or a folder of tables, its columns, and how predictions are written.

    column: that of the texts; pair: that of the second texts, for a sentence-pair model. columns:
    those that are copied to the output; None: all. keep_text: whether the texts are. bad_rows: see
    `BAD_ROWS`. all_probabilities: whether every label has a column. prefix: stands before the names
    of the answers' columns; None: nothing, or "predicted_" where the table has such names itself.
    keep_formulas: whether a CSV cell may begin like a formula, which a spreadsheet would compute.
    n_rows: in one part, where there are parts.
    """

    source: Path
    column: str = "text"
    pair: str | None = None
    columns: tuple[str, ...] | None = None
    keep_text: bool = True
    bad_rows: str = "empty"
    format: str = "csv"
    all_probabilities: bool = False
    prefix: str | None = None
    keep_formulas: bool = False
    n_rows: int = ROWS_PER_PART

    def __post_init__(self) -> None:
        pick(dict.fromkeys(FORMATS), self.format, "format")
        pick(BAD_ROWS, self.bad_rows, "treatment of bad rows")
        if self.format == "parquet" and find_spec("pyarrow") is None:
            raise UserError(
                "Parquet files need the package pyarrow: pip install 'litotes[parquet]', or use"
                " --format csv or jsonl."
            )
        if self.n_rows < 1:
            raise UserError(
                f"A part of {self.n_rows} rows holds nothing; use --rows-per-part 1 or more."
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that the model reads."""
        return (self.column,) if self.pair is None else (self.column, self.pair)

    def keep(self, names: Iterable[str]) -> tuple[str, ...]:
        """Selects which of these columns are copied."""
        # a column that is named twice, as by `--key text`, is written once
        kept = tuple(dict.fromkeys(names if self.columns is None else self.columns))
        if not self.keep_text:
            kept = tuple(name for name in kept if name not in self.texts)
        if not kept:
            raise UserError(
                "Without its text and without another column no one could tell which row is meant:"
                " keep the text, or a column that names the row."
            )
        return kept

    def layout_of(self, files: Sequence[Path], tasks: Mapping[str, Task]) -> Layout:
        """Lays out the rows of the output, of tables that each have the columns that are read."""
        names: dict[str, None] = {}
        for file in files:
            own = column_names(file, self.texts)
            if not own:  # JSON without an object: its first row says what is wrong with it
                first = next(read_rows(file, needs=()))
                if first.problem is not None:
                    raise UserError(first.problem)
            self.check_columns(file, own)
            names |= dict.fromkeys(own)
        return self.lay_out(self.keep(names), tasks)

    def lay_out(self, kept: tuple[str, ...], tasks: Mapping[str, Task]) -> Layout:
        """Lays out the rows of the output, with these columns of the input."""
        for prefix in ("", PREFIX) if self.prefix is None else (self.prefix,):
            layout = Layout(self, kept, tasks, prefix)
            taken = [column.name for column in layout.answers if column.name in kept]
            if not taken:
                return layout
        raise UserError(
            f"The table has a column {taken[0]!r} already, which the answers would take: name the"
            " columns to keep (--columns), or what shall stand before the answers' names"
            " (--prefix)."
        )

    def made_from(self, layout: Layout) -> dict[str, Any]:
        """Lists what the output depends on besides its input and its model."""
        return {
            "choice of columns": [list(self.texts), list(layout.kept)],
            "set of answer columns": [column.name for column in layout.answers],
            "treatment of bad rows": self.bad_rows,
            "format": self.format,
            "treatment of formulas": "kept" if self.keep_formulas else "guarded",
        }

    def check_columns(self, file: Path, names: Sequence[str]) -> None:
        """Refuses a table without the columns that are read or kept."""
        known = ", ".join(filter(None, names))
        pair = () if self.pair is None else (self.pair,)
        for name in (self.column, *pair, *(self.columns or ())):
            if name in names:
                continue
            advice = "Choose others: --columns LIST."
            if name == self.column:
                own = find_text_column(file) or "NAME"
                advice = f"Say which holds the texts: --column {own}."
            elif name == self.pair:
                advice = "Say which holds the second texts: --pair NAME."
            raise UserError(f"{file}: there is no column {name!r}. Known: {known}. {advice}")

    def check_target(self, out: Path) -> Target:
        """Finds where predictions for this table go, which must not be the table itself."""
        target = find_target(out)
        if out.exists() and self.source.exists() and out.samefile(self.source):
            raise UserError(f"{out} is the table itself: choose another --out.")
        return target

    def rows(self, *, keeps: Sequence[str] = ()) -> Iterator[Row]:
        """The rows of the only table. keeps: the columns to copy."""
        return read_rows(self.source, needs=self.texts, keeps=keeps)

    def input_rows(self, rows: Iterable[Row], kept: Sequence[str] | None) -> Iterator[InputRow]:
        """Yields what is kept of each row, None: all, and what the model is to be asked."""
        for row in rows:
            present = {**row.values, **row.found}
            if kept is not None:
                present = {name: present[name] for name in kept if name in present}
            yield InputRow(present, self.asked(row))

    def asked(self, row: Row) -> Asked:
        try:
            text, *others = (row.text(column) for column in self.texts)
        except UserError as error:
            if self.bad_rows == "stop":
                raise
            return BadText(row.values.get(self.column, ""), str(error))
        return (text, others[0]) if others else text


@dataclass(frozen=True)
class InputRow:
    """kept: what is copied to the output, by column."""

    kept: Mapping[str, object]
    asked: Asked


@dataclass(frozen=True)
class Layout:
    """The columns of an output: those of the input, then those of the answers.

    kept: the columns of the input. prefix: before the names of the answers' columns. types: Arrow's
    names for the types that kept columns have in Parquet; without one, a column is text.
    is_as_stored: whether they have those of the Parquet file they come from.
    """

    request: TableRequest
    kept: tuple[str, ...]
    tasks: Mapping[str, Task]
    prefix: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    is_as_stored: bool = False

    def notes(self) -> list[str]:
        """Lists what the user should know about the names."""
        if self.prefix in ("", self.request.prefix):
            return []
        return [
            f"The table has columns with the names of answers, so these begin with {self.prefix}:"
            f" {', '.join(column.name for column in self.answers)}."
        ]

    @cached_property
    def answers(self) -> list[Column]:
        return make_columns(
            self.tasks, all_probabilities=self.request.all_probabilities, prefix=self.prefix
        )

    @property
    def names(self) -> list[str]:
        """All columns in their order."""
        return [*self.kept, *(column.name for column in self.answers)]


@dataclass(frozen=True)
class AnsweredRows:
    """Rows that follow each other, and their answers. kept: what is copied from each, by column."""

    kept: Sequence[Mapping[str, object]]
    answers: Answers

    def written(self, layout: Layout) -> list[bool]:
        """Marks the rows that are part of the output: all, unless bad ones are left out."""
        if layout.request.bad_rows != "skip":
            return [True] * len(self.kept)
        return [place not in self.answers.problems for place in range(len(self.kept))]


def answer_rows(
    predictor: Predictor,
    rows: Iterable[InputRow],
    *,
    bad_texts: str = "empty",
    at_once: bool = True,
) -> Iterator[AnsweredRows]:
    """The rows in chunks, with their answers, in order. at_once: see `Predictor.stream_columns`."""
    rows, read = tee(rows)
    asked = (row.asked for row in read)
    for answers in predictor.stream_columns(asked, bad_texts=bad_texts, at_once=at_once):
        yield AnsweredRows([row.kept for row in islice(rows, len(answers))], answers)


@dataclass(frozen=True)
class Tally:
    """Counts of what became of the rows so far.

    n_bad: those without an answer; n_written: without those that were left out. n_unreadable: texts
    of which the model knows no part. problems: of the first bad rows.
    """

    n_read: int = 0
    n_written: int = 0
    n_bad: int = 0
    n_unreadable: int = 0
    problems: tuple[str, ...] = ()

    def add(self, rows: AnsweredRows, layout: Layout) -> Tally:
        answers, problems = rows.answers, tuple(rows.answers.problems.values())
        n_written, n_unreadable = sum(rows.written(layout)), int(answers.unreadable.sum())
        return self.merge(Tally(len(answers), n_written, len(problems), n_unreadable, problems))

    def merge(self, other: Tally) -> Tally:
        both = Tally(*map(add, astuple(self), astuple(other)))
        return replace(both, problems=both.problems[:_N_PROBLEMS])

    def sentences(self, bad_rows: str) -> list[str]:
        """Sums it up for the user. bad_rows: see `BAD_ROWS`."""
        told = []
        if self.n_bad:
            fate = "left out" if bad_rows == "skip" else "with no answer"
            n_more = self.n_bad - len(self.problems)
            more = f" And {n_more:,} more." if n_more else ""
            told.append(f"{counted(self.n_bad, 'row')} {fate}: {' '.join(self.problems)}{more}")
        if self.n_unreadable:
            told.append(
                f"Unreadable texts: {self.n_unreadable:,} (the model knows no part of them)."
            )
        return told


def header_line(layout: Layout, format: str) -> str:
    """Returns what stands before the first row: a header in CSV, nothing in JSON lines."""
    if format != "csv":
        return ""
    names = layout.names
    return _csv_lines([names if layout.request.keep_formulas else map(guard_formula, names)])


def row_lines(layout: Layout, format: str, rows: AnsweredRows) -> str:
    """The rows as lines of CSV or JSON."""
    if format == "jsonl":
        return "".join(f"{to_json(document)}\n" for document in as_documents(layout, rows))
    columns: list[list[Any]] = [_kept_cells(name, layout, rows) for name in layout.kept]
    for column in layout.answers:
        cells = rows.answers.cells(column)
        if column.kind == STRING and not layout.request.keep_formulas:
            cells = [guard_formula(cell or "") for cell in cells]
        columns.append(cells)
    known = set(layout.kept)
    for kept in rows.kept:
        if not kept.keys() <= known:  # only of what is no ordinary file can this be a surprise
            name = next(name for name in kept if name not in known)
            raise UserError(
                f"A row has the column {name!r}, which the rows before have not: save the input to"
                " a file, or write --format jsonl."
            )
    return _csv_lines(compress(zip(*columns, strict=True), rows.written(layout)))


def as_documents(layout: Layout, rows: AnsweredRows) -> Iterator[dict[str, Any]]:
    """Yields each row as one JSON object: its own columns, then its answers."""
    pairs = zip(rows.kept, rows.answers.predictions(), strict=True)
    for kept, prediction in compress(pairs, rows.written(layout)):
        yield {**kept, **answers_as_json(prediction, layout.tasks, prefix=layout.prefix)}


def arrow_table(layout: Layout, rows: AnsweredRows, kept: Any = None) -> Any:
    """The rows as a pyarrow Table. kept: the columns of the input as one, where it has them."""
    import pyarrow as pa

    if kept is None:
        columns = {}
        for name in layout.kept:
            cells, kind = [row.get(name) for row in rows.kept], layout.types.get(name, STRING)
            if kind == STRING:
                cells = [None if cell is None else cell_text(cell) for cell in cells]
            columns[name] = pa.array(cells, kind)
        kept = pa.table(columns)
    for column in layout.answers:
        cells = pa.array(rows.answers.cells(column), column.kind)
        kept = kept.append_column(column.name, cells)
    return kept.filter(pa.array(rows.written(layout)))


def _kept_cells(name: str, layout: Layout, rows: AnsweredRows) -> list[str]:
    cells = [cell_text(kept.get(name)) for kept in rows.kept]
    if layout.request.keep_formulas:
        return cells
    return list(map(guard_formula if name in layout.request.texts else _guard_unless_number, cells))


def cell_text(value: object) -> str:
    """A value of any type as the text of a cell; what is neither text nor number is JSON."""
    if isinstance(value, list | dict):
        return to_json(value)
    if isinstance(value, str):  # with a mark for what is no text: one cell ends no run
        return replace_characters(value)
    return as_text(value, "a column that is kept")


def _guard_unless_number(cell: str) -> str:
    """Guards a formula; -5 is none."""
    guarded = guard_formula(cell)
    if guarded != cell:
        with suppress(ValueError):
            float(cell)
            return cell
    return guarded


def _csv_lines(rows: Iterable[Iterable[object]]) -> str:
    target = StringIO()
    csv.writer(target).writerows(rows)
    return target.getvalue()
