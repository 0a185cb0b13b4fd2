"""What predictions in parts are made of: the tables to read, their columns, the format to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.prediction.columns import TEXT, Column, answer_columns
from litotes.prediction.tables.formats import PART_FORMATS

ROWS_PER_PART = 5000
"""What is lost when a worker dies, at most: half a minute on one core.

Smaller parts only make more files.
"""


@dataclass(frozen=True)
class FolderRequest:
    """A table or a folder of tables, its columns, and how predictions are written.

    key: a column that is copied to the output. keep_text: whether the text is copied; without it
    only the key says which row is meant. n_rows: in one part. keep_formulas: see `PredictionTable`.
    """

    source: Path
    column: str = "text"
    pair: str | None = None
    key: str | None = None
    keep_text: bool = True
    format: str = "parquet"
    n_rows: int = ROWS_PER_PART
    keep_formulas: bool = False

    def __post_init__(self) -> None:
        pick(PART_FORMATS, self.format, "format")
        if self.format == "parquet" and find_spec("pyarrow") is None:
            raise UserError(
                "Parquet files need the package pyarrow: pip install 'litotes[parquet]', or use"
                " --format csv or jsonl."
            )
        if self.n_rows < 1:
            raise UserError(
                f"A part of {self.n_rows} rows holds nothing; use --rows-per-part 1 or more."
            )
        if not self.keep_text and self.key is None:
            raise UserError(
                "Without its text and without a key nobody could tell which row is meant: give"
                " --key COLUMN with --no-text."
            )

    def needs(self) -> list[str]:
        """The columns to read."""
        columns = (self.column, self.pair, self.key)
        return list(dict.fromkeys(name for name in columns if name is not None))

    def columns(self, tasks: Mapping[str, Task]) -> list[Column]:
        """The columns to write behind the key."""
        answers = answer_columns(tasks)
        return [TEXT, *answers] if self.keep_text else answers

    def check_names(self, tasks: Mapping[str, Task]) -> None:
        """Refuses a key whose name is that of another column to write."""
        names = [column.name for column in self.columns(tasks)]
        if self.key in names:
            raise UserError(
                f"The key {self.key!r} would stand in a column that the answers take"
                f" ({', '.join(names)}): rename it first."
            )
