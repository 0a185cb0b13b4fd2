"""Any table as rows; the end of its name tells how it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.delimited import DELIMITERS, find_delimiter, read_delimited
from litotes.data.tables.files import BEGINNING, Start, require_file
from litotes.data.tables.json_rows import JSON_FILES, read_json
from litotes.data.tables.parquet import read_parquet
from litotes.data.tables.plain_text import PLAIN_TEXT, read_plain_text
from litotes.data.tables.row import Row


def kind_of(path: Path) -> str:
    """How a file is read: as .csv, .tsv, .jsonl, .txt or .parquet."""
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind in DELIMITERS or kind == PLAIN_TEXT:
        return kind
    if kind in JSON_FILES:
        return ".jsonl"
    if path.suffix.lower() == ".parquet":
        return ".parquet"
    raise UserError(
        f"{path} is not a table that can be read: save it as .csv, .tsv, .jsonl or .txt (each also"
        " with .gz), or as .parquet."
    )


def read_rows(
    path: Path, *, needs: Collection[str], quotes: bool = True, start: Start = BEGINNING
) -> Iterator[Row]:
    """The rows of a table, of which there must be at least one, with the columns in `needs`."""
    require_file(path)
    kind = kind_of(path)
    if kind in DELIMITERS:
        delimiter = find_delimiter(path, kind)
        rows = read_delimited(path, delimiter, needs, quotes=quotes, start=start)
    elif kind == PLAIN_TEXT:
        rows = read_plain_text(path, needs, start)
    elif kind == ".jsonl":
        rows = read_json(path, needs, start)
    else:
        rows = read_parquet(path, needs, start)
    if (first := next(rows, None)) is None:
        raise UserError(f"{path} has no rows: give a file with at least one text in it.")
    yield first
    yield from rows
