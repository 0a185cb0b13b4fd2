"""What is asked of bulk scoring, and what the answers look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.predict.frames import names_of
from litotes.predict.tables.writing import PART_FORMATS

ROWS_PER_PART = 5000
"""What is lost when a worker dies, at most: half a minute on one core.

Smaller parts only make more files.
"""


@dataclass(frozen=True)
class Request:
    """A table or a folder of tables, its columns, and how answers are written.

    key: a column that is kept beside the answers. has_text: whether the text is; without it only
    the key says which row is meant.
    """

    source: Path
    column: str = "text"
    pair: str | None = None
    key: str | None = None
    has_text: bool = True
    format: str = "parquet"
    n_rows: int = ROWS_PER_PART

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
        if not self.has_text and self.key is None:
            raise UserError(
                "Without its text and without a key nobody could tell which row is meant: give"
                " --key COLUMN with --no-text."
            )

    def needs(self) -> list[str]:
        """The columns to read."""
        return list(
            dict.fromkeys(name for name in (self.column, self.pair, self.key) if name is not None)
        )

    def check_names(self, tasks: Mapping[str, Task]) -> None:
        """Refuses a key that would stand in a column of the answers."""
        taken = [*(["text"] if self.has_text else []), *names_of(tasks)]
        if self.key in taken:
            raise UserError(
                f"The key {self.key!r} would stand in a column that the answers take"
                f" ({', '.join(taken)}): rename it first."
            )
