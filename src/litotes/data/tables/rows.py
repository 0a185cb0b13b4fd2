"""Any table as rows; the end of its name tells how it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.delimited import read_column_names, read_delimited
from litotes.data.tables.files import BEGINNING, Start, require_file
from litotes.data.tables.json_rows import JSON_FILES, read_json
from litotes.data.tables.parquet import open_parquet, read_parquet
from litotes.data.tables.plain_text import COLUMN, PLAIN_TEXT, read_plain_text
from litotes.data.tables.records import DELIMITERS, find_delimiter
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
    path: Path,
    *,
    needs: Collection[str],
    keeps: Collection[str] = (),
    quotes: bool = True,
    start: Start = BEGINNING,
    lenient: bool = False,
) -> Iterator[Row]:
    """The rows of a table, of which there must be at least one, with the columns in `needs`.

    keeps: columns whose values are wanted as they are. lenient: a row that cannot be used is
    yielded with its problem; otherwise the problem is raised.
    """
    require_file(path)
    kind = kind_of(path)
    if kind in DELIMITERS:
        delimiter = find_delimiter(path, kind, needs)
        rows = read_delimited(path, delimiter, needs, quotes=quotes, start=start, lenient=lenient)
    elif kind == PLAIN_TEXT:
        rows = read_plain_text(path, needs, start, lenient)
    elif kind == ".jsonl":
        rows = read_json(path, needs, start, lenient)
    else:
        rows = read_parquet(path, needs, start, lenient, keeps)
    if (first := next(rows, None)) is None:
        raise UserError(f"{path} has no rows: give a file with at least one text in it.")
    yield first
    yield from rows


def column_names(path: Path, needs: Collection[str] = ()) -> list[str]:
    """The columns of a table; of JSON, those that any of its rows has.

    needs: columns that it must have, by which a delimiter is chosen.
    """
    require_file(path)
    kind = kind_of(path)
    if kind in DELIMITERS:
        return read_column_names(path, find_delimiter(path, kind, needs))
    if kind == PLAIN_TEXT:
        return [COLUMN]
    if kind == ".parquet":
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    names: dict[str, None] = {}
    for row in read_json(path, (), BEGINNING, lenient=True):
        names |= dict.fromkeys(row.found)
    return list(names)
