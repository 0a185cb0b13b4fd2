"""The table whose texts are labelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.targets import Target, find_target
from litotes.data.tables.row import Row
from litotes.data.tables.rows import read_rows


@dataclass(frozen=True)
class InputTable:
    """A file, the column of its texts, and that of the second texts for a sentence-pair model."""

    file: Path
    column: str = "text"
    pair: str | None = None

    def check_target(self, out: Path) -> Target:
        """Where predictions for this table go; it must not be the table itself."""
        target = find_target(out)
        if out.exists() and self.file.exists() and out.samefile(self.file):
            raise UserError(f"{out} is the table itself: choose another --out.")
        return target

    def rows(self) -> Iterator[Row]:
        needs = [self.column] if self.pair is None else [self.column, self.pair]
        return read_rows(self.file, needs=needs)

    def text_of(self, row: Row) -> str | tuple[str, str]:
        """What the model reads of a row: its text, or its text and the second one."""
        text = row.text(self.column)
        return text if self.pair is None else (text, row.text(self.pair))

    def texts(self) -> Iterator[str | tuple[str, str]]:
        return map(self.text_of, self.rows())
