"""The corpora that come with the package: one file of rows for each variety."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files

from litotes.data.tables import read_rows
from litotes.data.tables.rows import Row


def builtin_rows(corpus: str, variety: str, needs: Sequence[str]) -> Iterator[Row]:
    """The rows of a corpus in one variety; `needs` are the columns each must have."""
    with as_file(files("litotes.data") / corpus / f"{variety}.jsonl") as file:
        yield from read_rows(file, needs=needs)
