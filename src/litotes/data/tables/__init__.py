"""Tables: any CSV, TSV, JSON, Parquet or text file as rows, or as spans of rows.

The end of a file's name tells how it is read. A span can be read by itself, in any process, at any
time:

    Parquet            the rows are counted in the file's own list of row groups
    lines              one pass finds the first byte of the line a span begins in; a reader seeks
                       to that byte

A .gz file cannot be entered in the middle: it is unpacked up to the span (and not parsed), which
costs little next to the predictions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.files import BEGINNING, Start, read_lines, require_file
from litotes.data.tables.parquet import open_parquet, read_parquet
from litotes.data.tables.rows import (
    COLUMN,
    DELIMITERS,
    JSON_FILES,
    PLAIN_TEXT,
    Row,
    find_delimiter,
    is_array,
    read_array,
    read_delimited,
    read_header,
    read_json,
    read_plain_text,
    read_records,
)


def kind_of(path: Path) -> str:
    """Tells how a file is read: as .csv, .tsv, .jsonl, .txt or .parquet."""
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
) -> Iterator[Row]:
    """The rows of a table, of which there must be at least one, with the columns in `needs`.

    keeps: columns whose values are wanted as they are. A row that cannot be used says why as soon
    as it is used, so that one bad row does not end the reading.
    """
    require_file(path)
    kind = kind_of(path)
    if kind in DELIMITERS:
        delimiter = find_delimiter(path, kind, needs)
        rows = read_delimited(path, delimiter, needs, quotes=quotes, start=start)
    elif kind == PLAIN_TEXT:
        rows = read_plain_text(path, needs, start)
    elif kind == ".jsonl":
        rows = read_json(path, needs, start)
    else:
        rows = read_parquet(path, needs, start, keeps)
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
        delimiter = find_delimiter(path, kind, needs)
        return read_header(path, next(read_records(path, delimiter=delimiter)))
    if kind == PLAIN_TEXT:
        return [COLUMN]
    if kind == ".parquet":
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    names: dict[str, None] = {}
    for row in read_json(path, (), BEGINNING):
        names |= dict.fromkeys(row.found)
    return list(names)


@dataclass(frozen=True)
class Span:
    """Rows of one file that follow each other."""

    file: str
    start: Start
    n_rows: int

    def rows(self, needs: Collection[str], *, keeps: Collection[str] = ()) -> Iterator[Row]:
        """The rows, as many as there were when the file was cut; see `read_rows`."""
        n_read = 0
        rows = read_rows(Path(self.file), needs=needs, keeps=keeps, start=self.start)
        for row in islice(rows, self.n_rows):
            n_read += 1
            yield row
        if n_read < self.n_rows:
            raise UserError(
                f"{self.file} has become shorter since its rows were counted: begin anew, with"
                " another --out."
            )


def find_tables(source: Path) -> list[Path]:
    """The file itself, or all tables of a folder and its subfolders, by name.

    Names that begin with . or _ are skipped.
    """
    if not source.is_dir():
        require_file(source)
        kind_of(source)
        return [source]
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    found = [path for path in files if not _is_hidden(path.relative_to(source))]
    if not found:
        raise UserError(
            f"{source} holds no tables: name a folder of .parquet, .jsonl, .csv or .tsv files."
        )
    for path in found:
        # a file that is not a table is refused before anything is read; a .txt may hold notes
        if kind_of(path) == PLAIN_TEXT:
            raise UserError(
                f"{path} is not a table: take it out of the folder, or name it by itself if its"
                " lines are texts."
            )
    return found


def cut_spans(path: Path, *, n_rows: int, needs: Collection[str]) -> list[Span]:
    """The whole table in spans of up to n_rows, none where it has no rows.

    Refuses a table without the columns in `needs`.
    """
    starts, n_total = [], 0
    for start in _row_starts(path, needs):
        if n_total % n_rows == 0:
            starts.append(start)
        n_total += 1
    spans = [Span(str(path), start, min(n_rows, n_total - start.row)) for start in starts]
    if spans:
        next(spans[0].rows(needs))  # checks the columns
    return spans


def _row_starts(path: Path, needs: Collection[str]) -> Iterator[Start]:
    """Yields where every row begins."""
    kind = kind_of(path)
    if kind == ".parquet":
        with open_parquet(path) as file:
            yield from map(Start, range(file.metadata.num_rows))
    elif kind == ".jsonl" and is_array(path):
        yield from map(Start, range(len(read_array(path))))
    else:
        lines = read_lines(path)
        if kind in DELIMITERS:
            records = read_records(path, delimiter=find_delimiter(path, kind, needs))
            lines = (record.first for record in islice(records, 1, None))  # after the header
        elif kind != PLAIN_TEXT:
            lines = (line for line in lines if line.text.strip())
        for row, line in enumerate(lines):
            yield Start(row, line.number, line.offset)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)
