"""What is asked of tables: which columns are read and kept, and how the answers are written."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.numbers import counted, require_count
from litotes.core.registry import pick
from litotes.core.storage import Target, find_target
from litotes.core.text import guard_formula
from litotes.core.values import BadText, Prediction, Task
from litotes.data.inspection import find_text_column
from litotes.data.tables import column_names, read_rows
from litotes.data.tables.rows import Row, as_text, replace_characters
from litotes.prediction.answers import BAD_ROWS, STRING, Column, answer_columns, answers_as_json
from litotes.prediction.frames import arrow_array

if TYPE_CHECKING:
    from litotes.data.tables.rows import Row
    from litotes.prediction.predictor import Predictor

ROWS_PER_PART = 5000
"""What is lost when a worker dies, at most: half a minute on one core.

Smaller parts only make more files.
"""


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
        pick(FORMATS, self.format, "format")
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
    def is_lenient(self) -> bool:
        return self.bad_rows != "stop"

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that the model reads."""
        return (self.column,) if self.pair is None else (self.column, self.pair)

    def kept_columns(self, files: Sequence[Path]) -> tuple[str, ...]:
        """The columns that are copied from these tables, of which each has those that are read."""
        names: dict[str, None] = {}
        for file in files:
            own = column_names(file, self.texts)
            if not own:  # JSON without an object: its first row says what is wrong with it
                next(read_rows(file, needs=()))
            self.check_columns(file, own)
            names |= dict.fromkeys(own)
        return self.keep(tuple(names))

    def keep(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Of these columns, those that are copied."""
        # a column that is named twice, as by `--key text`, is written once
        kept = tuple(dict.fromkeys(names if self.columns is None else self.columns))
        if not self.keep_text:
            kept = tuple(name for name in kept if name not in self.texts)
        if not kept:
            raise UserError(
                "Without its text and without another column nobody could tell which row is meant:"
                " keep the text, or a column that names the row."
            )
        return kept

    def lay_out(self, kept: tuple[str, ...], tasks: Mapping[str, Task]) -> Layout:
        """What the rows of the output hold, with these columns of the input."""
        prefix = choose_prefix(kept, tasks, self.prefix, all_probabilities=self.all_probabilities)
        return Layout(
            kept,
            tasks,
            self.texts,
            all_probabilities=self.all_probabilities,
            prefix=prefix,
            keep_formulas=self.keep_formulas,
        )

    def made_from(self, layout: Layout) -> dict[str, Any]:
        """What the output depends on besides its input and its model; see `resume`."""
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
        if self.column not in names:
            raise UserError(
                f"{file}: there is no column {self.column!r}. Known: {known}. Say which holds the"
                f" texts: --column {find_text_column(file) or 'NAME'}."
            )
        if self.pair is not None and self.pair not in names:
            raise UserError(
                f"{file}: there is no column {self.pair!r}. Known: {known}. Say which holds the"
                " second texts: --pair NAME."
            )
        for name in self.columns or ():
            if name not in names:
                raise UserError(f"{file}: there is no column {name!r} to keep. Known: {known}.")

    def check_target(self, out: Path) -> Target:
        """Where predictions for this table go; it must not be the table itself."""
        target = find_target(out)
        if out.exists() and self.source.exists() and out.samefile(self.source):
            raise UserError(f"{out} is the table itself: choose another --out.")
        return target

    def rows(self, *, keeps: Sequence[str] = ()) -> Iterator[Row]:
        """The rows of the only table. keeps: the columns to copy."""
        return read_rows(self.source, needs=self.texts, keeps=keeps, lenient=self.is_lenient)


def make_layout(request: TableRequest, files: Sequence[Path], tasks: Mapping[str, Task]) -> Layout:
    """What the rows of the output hold."""
    return request.lay_out(request.kept_columns(files), tasks)


# What the rows of an output hold: columns of the input, then those of the answers.

PREFIX = "predicted_"
"""Before the names of the answers' columns, where the table has such names itself."""


@dataclass(frozen=True)
class AnsweredRow:
    """kept: what is copied from the input, by column."""

    kept: Mapping[str, object]
    prediction: Prediction


@dataclass(frozen=True)
class Layout:
    """kept: the columns of the input. texts: those of them that hold texts. types: Arrow's names
    for the types that kept columns have in Parquet; without one, a column is text. is_as_stored:
    whether they have those of the Parquet file they come from. For the others see `TableRequest`.
    """

    kept: tuple[str, ...]
    tasks: Mapping[str, Task]
    texts: tuple[str, ...] = ("text",)
    types: Mapping[str, str] = field(default_factory=dict)
    is_as_stored: bool = False
    all_probabilities: bool = False
    prefix: str = ""
    keep_formulas: bool = False

    def notes(self, asked: str | None) -> list[str]:
        """What the user should know of the names. asked: the prefix that was asked for."""
        if asked is not None or not self.prefix:
            return []
        return [
            f"The table has columns with the names of answers, so these begin with {self.prefix}:"
            f" {', '.join(column.name for column in self.answers)}."
        ]

    @cached_property
    def answers(self) -> list[Column]:
        return answer_columns(
            self.tasks, all_probabilities=self.all_probabilities, prefix=self.prefix
        )

    @property
    def names(self) -> list[str]:
        """All columns in their order."""
        return [*self.kept, *(column.name for column in self.answers)]


def choose_prefix(
    kept: Sequence[str], tasks: Mapping[str, Task], asked: str | None, *, all_probabilities: bool
) -> str:
    """The prefix that keeps the answers' columns apart from those of the table.

    asked: the one that the user named.
    """
    for prefix in ("", PREFIX) if asked is None else (asked,):
        answers = answer_columns(tasks, all_probabilities=all_probabilities, prefix=prefix)
        taken = [column.name for column in answers if column.name in kept]
        if not taken:
            return prefix
    raise UserError(
        f"The table has a column {taken[0]!r} already, which the answers would take: name the"
        " columns to keep (--columns), or what shall stand before the answers' names (--prefix)."
    )


# Rows with their answers as the content of a file: CSV, JSON lines or Parquet.

Rows = Sequence[AnsweredRow]


@dataclass(frozen=True)
class LineFormat:
    """A format that can be written row by row.

    header: what stands before the first row; rows: the lines of rows.
    """

    header: Callable[[Layout], str]
    rows: Callable[[Layout, Rows], str]

    def encode(self, layout: Layout, rows: Rows) -> bytes:
        """A whole file."""
        return (self.header(layout) + self.rows(layout, rows)).encode()


def cell_text(value: object) -> str:
    """A value of any type as the text of a cell; what is neither text nor number is JSON."""
    if isinstance(value, list | dict):
        return to_json(value)
    if isinstance(value, str):  # with a mark for what is no text: one cell ends no run
        return replace_characters(value)
    return as_text(value, "a column that is kept")


def _csv_header(layout: Layout) -> str:
    names = layout.names
    return _csv_lines([names if layout.keep_formulas else list(map(guard_formula, names))])


def _csv_rows(layout: Layout, rows: Rows) -> str:
    columns = [_kept_cells(name, layout, rows) for name in layout.kept]
    predictions = [row.prediction for row in rows]
    for column in layout.answers:
        cells = column.values(predictions)
        if column.kind == STRING and not layout.keep_formulas:
            cells = [guard_formula(cell or "") for cell in cells]
        columns.append(cells)
    for row in rows:
        _check_known(row, layout)
    return _csv_lines(zip(*columns, strict=True))


def _kept_cells(name: str, layout: Layout, rows: Rows) -> list[str]:
    cells = [cell_text(row.kept.get(name)) for row in rows]
    if layout.keep_formulas:
        return cells
    return list(map(guard_formula if name in layout.texts else _guard_unless_number, cells))


def _guard_unless_number(cell: str) -> str:
    """-5 is no formula."""
    try:
        float(cell)
    except ValueError:
        return guard_formula(cell)
    return cell


def _check_known(row: AnsweredRow, layout: Layout) -> None:
    """Only the columns of what is no ordinary file can come as a surprise."""
    for name in row.kept:
        if name not in layout.kept:
            raise UserError(
                f"A row has the column {name!r}, which the rows before have not: save the input to"
                " a file, or write --format jsonl."
            )


def _csv_lines(rows: Iterable[Iterable[object]]) -> str:
    target = StringIO()
    csv.writer(target).writerows(rows)
    return target.getvalue()


def _no_header(_: Layout) -> str:
    return ""


def _jsonl_rows(layout: Layout, rows: Rows) -> str:
    return "".join(to_json(as_document(layout, row)) + "\n" for row in rows)


def as_document(layout: Layout, row: AnsweredRow) -> dict[str, Any]:
    """A row as one JSON object: its own columns, then its answers."""
    answers = answers_as_json(row.prediction, layout.tasks, prefix=layout.prefix)
    return {**row.kept, **answers}


def encode_parquet(layout: Layout, rows: Rows, kept: Any = None) -> bytes:
    """A whole file. kept: the columns of the input as a pyarrow Table, where it has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kept is None:
        arrays = {name: _arrow_cells(name, layout, rows) for name in layout.kept}
        kept = pa.table(arrays)
    predictions = [row.prediction for row in rows]
    for column in layout.answers:
        values = arrow_array(column.values(predictions), column.kind)
        kept = kept.append_column(column.name, values)
    target = BytesIO()
    pq.write_table(kept, target)
    return target.getvalue()


def _arrow_cells(name: str, layout: Layout, rows: Rows) -> Any:
    import pyarrow as pa

    cells = [row.kept.get(name) for row in rows]
    if name in layout.types:
        return pa.array(cells, pa.type_for_alias(layout.types[name]))
    return pa.array([None if cell is None else cell_text(cell) for cell in cells], pa.string())


CSV = LineFormat(_csv_header, _csv_rows)
JSONL = LineFormat(_no_header, _jsonl_rows)

LINE_FORMATS = {"csv": CSV, "jsonl": JSONL}
"""Formats of a file that grows row by row."""

FORMATS: dict[str, Callable[[Layout, Rows], bytes]] = {
    "parquet": encode_parquet,
    "jsonl": JSONL.encode,
    "csv": CSV.encode,
}
"""Formats of a part, which is written in one piece."""


# Rows with their answers: each row's columns stay with it while its text is asked about.

_N_PROBLEMS = 3
"""Problems that are told one by one; more are only counted."""

Asked = str | tuple[str, str] | BadText
"""What the model is asked about: a text, a text and a second one, or why neither can be read."""


@dataclass(frozen=True)
class InputRow:
    """kept: what is copied to the output, by column."""

    kept: Mapping[str, object]
    asked: Asked


@dataclass(frozen=True)
class Tally:
    """What became of rows so far.

    n_bad: those without an answer; n_written: without those that were left out. n_unreadable: texts
    of which the model knows no part. problems: of the first bad rows.
    """

    n_read: int = 0
    n_written: int = 0
    n_bad: int = 0
    n_unreadable: int = 0
    problems: tuple[str, ...] = ()

    def add(self, prediction: Prediction, bad_rows: str) -> Tally:
        """bad_rows: see `BAD_ROWS`."""
        problem = prediction.problem
        return self.merge(
            Tally(
                1,
                int(is_written(prediction, bad_rows)),
                int(problem is not None),
                int(prediction.unreadable),
                () if problem is None else (problem,),
            )
        )

    def merge(self, other: Tally) -> Tally:
        return Tally(
            self.n_read + other.n_read,
            self.n_written + other.n_written,
            self.n_bad + other.n_bad,
            self.n_unreadable + other.n_unreadable,
            (*self.problems, *other.problems)[:_N_PROBLEMS],
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Tally:
        counts = {}
        for name in ("n_read", "n_written", "n_bad", "n_unreadable"):
            counts[name] = require_count(content[name])
        return cls(**counts, problems=tuple(map(str, content["problems"])))

    def sentences(self, bad_rows: str) -> list[str]:
        """What the user should know. bad_rows: see `BAD_ROWS`."""
        told = []
        if self.n_bad:
            fate = "was left out" if self.n_bad == 1 else "were left out"
            if bad_rows != "skip":
                fate = "has no answer" if self.n_bad == 1 else "have no answers"
            n_more = self.n_bad - len(self.problems)
            more = f" And {n_more:,} more." if n_more else ""
            told.append(f"{counted(self.n_bad, 'row')} {fate}: {' '.join(self.problems)}{more}")
        if self.n_unreadable:
            told.append(
                f"Unreadable texts: {self.n_unreadable:,} (the model knows no part of them)."
            )
        return told


def is_written(prediction: Prediction, bad_rows: str) -> bool:
    """Whether its row is part of the output. bad_rows: see `BAD_ROWS`."""
    return prediction.problem is None or bad_rows != "skip"


@dataclass(frozen=True)
class FileResult:
    """A finished file: what its rows hold, and what became of those of the input."""

    layout: Layout
    tally: Tally


def input_rows(
    request: TableRequest, rows: Iterable[Row], kept: Sequence[str] | None
) -> Iterator[InputRow]:
    """Rows with what is kept of them, None: all, and what the model is to be asked."""
    for row in rows:
        yield InputRow(_kept_values(row, kept), _asked(request, row))


def _kept_values(row: Row, kept: Sequence[str] | None) -> dict[str, object]:
    present = {**row.values, **row.found}
    return present if kept is None else {name: present[name] for name in kept if name in present}


def _asked(request: TableRequest, row: Row) -> Asked:
    try:
        text, *others = (row.text(column) for column in request.texts)
    except UserError as error:
        if not request.is_lenient:
            raise
        return BadText(row.values.get(request.column, ""), str(error))
    return (text, others[0]) if others else text


def answer_rows(
    predictor: Predictor, rows: Iterable[InputRow], *, bad_texts: str = "empty"
) -> Iterator[AnsweredRow]:
    """Every row with its prediction, in order; of a bad one, that has a problem."""
    waiting: deque[InputRow] = deque()

    def asked() -> Iterator[Asked]:
        for row in rows:
            waiting.append(row)
            yield row.asked

    for prediction in predictor.stream(asked(), bad_texts=bad_texts):
        yield AnsweredRow(waiting.popleft().kept, prediction)
