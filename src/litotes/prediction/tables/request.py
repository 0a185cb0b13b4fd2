"""What is asked of tables: which columns are read and kept, and how the answers are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.core.storage import Target, find_target
from litotes.core.values import Task
from litotes.data.inspection import find_text_column
from litotes.data.tables.row import Row
from litotes.data.tables.rows import column_names, read_rows
from litotes.prediction.bad_texts import BAD_ROWS
from litotes.prediction.tables.formats import FORMATS
from litotes.prediction.tables.layout import Layout, choose_prefix

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
