"""A file of texts, one a line: a table whose only column is `text`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from litotes.data.tables.files import Start, read_lines
from litotes.data.tables.row import (
    Row,
    character_problem,
    replace_characters,
    require_columns,
)

PLAIN_TEXT = ".txt"
COLUMN = "text"


def read_plain_text(
    path: Path, needs: Collection[str], start: Start, lenient: bool
) -> Iterator[Row]:
    """Every line is a row, an empty one too: left out, it would shift the numbers of the others."""
    require_columns(str(path), [COLUMN], needs)
    for number, line in read_lines(path, start=start, lenient=lenient):
        text = line.rstrip("\r\n")
        problem = character_problem([text], f"{path}, line {number}")
        yield Row(str(path), number, {COLUMN: replace_characters(text)}, problem=problem)
