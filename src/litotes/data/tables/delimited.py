"""CSV and TSV files, with every mistake in their quotes and widths named by its line."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.files import BEGINNING, MAX_CHARS, Start, read_lines
from litotes.data.tables.row import Row, require_columns

Record = tuple[int, list[str]]
"""The line a record begins in, and its fields."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHERS = ";\t|,"


def find_delimiter(path: Path, kind: str) -> str:
    """What the header separates its columns with: usually what the file's name says; many programs
    write a .csv with semicolons, tabs or bars.
    """
    usual = DELIMITERS[kind]
    if not path.is_file():  # a pipe cannot be read twice
        return usual
    _, header = next(read_lines(path), (0, ""))
    if len(_split(header, usual)) > 1:
        return usual
    return max((usual, *_OTHERS), key=lambda delimiter: len(_split(header, delimiter)))


def _split(header: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([header.rstrip("\r\n")], delimiter=delimiter), [])
    except csv.Error:  # reported when the file is read
        return []


def read_delimited(
    path: Path, delimiter: str, needs: Collection[str], *, quotes: bool, start: Start
) -> Iterator[Row]:
    """The rows of a file whose first record names the columns."""
    records = read_records(path, delimiter=delimiter, quotes=quotes)
    line, fields = next(records)
    header = [field.strip() for field in fields]
    place = f"{path}, line {line}"
    require_columns(place, header, needs)
    for column in needs:
        n_times = header.count(column)
        if n_times > 1:
            raise UserError(
                f"{place}: the column {column!r} is there {n_times} times. Rename all but one."
            )
    if start.row:
        records = read_records(path, delimiter=delimiter, quotes=quotes, start=start)
    yield from rows_from(path, header, records)


def read_records(
    path: Path, *, delimiter: str = ",", quotes: bool = True, start: Start = BEGINNING
) -> Iterator[Record]:
    """The records of a delimited file; an empty file is refused, blank lines are skipped."""
    read = _read_quoted if quotes else _read_unquoted
    is_empty = True
    for line, fields in read(path, delimiter, start):
        if fields:
            is_empty = False
            yield line, fields
    if is_empty:
        raise UserError(f"{path} is empty: give a file with a header line and at least one row.")


def rows_from(path: Path, header: Sequence[str], records: Iterable[Record]) -> Iterator[Row]:
    """Records as rows; each must have as many fields as the header has columns."""
    for line, fields in records:
        if len(fields) != len(header):
            raise UserError(_wrong_width(f"{path}, line {line}", header, len(fields)))
        yield Row(str(path), line, dict(zip(header, fields, strict=True)))


def _wrong_width(place: str, header: Sequence[str], n_fields: int) -> str:
    counted = "1 field" if n_fields == 1 else f"{n_fields} fields"
    sentence = f"{place} has {counted} where there should be {len(header)} ({', '.join(header)})."
    if n_fields < len(header):
        return (
            f"{sentence} The first one missing is {header[n_fields]!r}: fill it in, or take the row"
            " out."
        )
    return f"{sentence} Put quotes around a text that holds the delimiter."


def _read_unquoted(path: Path, delimiter: str, start: Start) -> Iterator[Record]:
    for number, line in read_lines(path, start=start):
        content = line.rstrip("\r\n")
        yield number, content.split(delimiter) if content else []


def _read_quoted(path: Path, delimiter: str, start: Start) -> Iterator[Record]:
    # A limit of the whole process, and by default too low for the texts we allow; it is only ever
    # raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CHARS))
    lines: list[str] = []  # of the record being read
    reader = csv.reader(_collect_lines(path, lines, start), delimiter=delimiter, strict=True)
    while True:
        first = start.line + reader.line_num
        lines.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            place = f"{path}, line {first}"
            raise UserError(_bad_quotes(place, lines, delimiter, str(error))) from error
        yield first, fields


def _collect_lines(path: Path, lines: list[str], start: Start) -> Iterator[str]:
    """The lines of the file, each also appended to `lines`, which the reader empties."""
    # An unclosed quote would swallow the rest of the file, so the record being read has a limit as
    # well.
    n_chars = 0
    for number, line in read_lines(path, start=start):
        n_chars = n_chars + len(line) if lines else len(line)
        if n_chars > MAX_CHARS:
            raise UserError(
                f"{path}, line {number - len(lines)}: the record that begins here is longer than"
                f" {MAX_CHARS:,} characters. Look for a quote that is opened and never closed."
            )
        lines.append(line)
        yield line


def _bad_quotes(place: str, lines: Sequence[str], delimiter: str, reason: str) -> str:
    if reason == "unexpected end of data":
        # a lenient second look ends in the field left open
        column = len(next(csv.reader(lines, delimiter=delimiter)))
        return (
            f"{place}, column {column}: a quote is opened and never closed. Close it, or double the"
            " quotes that belong to the text."
        )
    if reason.startswith("new-line character"):
        return (
            f"{place}: a bare carriage return stands outside quotes. Save the file with ordinary"
            " line ends."
        )
    return (
        f"{place}: {reason}. Put the text in quotes and double the quotes that belong to it (or"
        " read the table with quotes=no)."
    )
