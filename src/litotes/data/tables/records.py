"""The records of CSV and TSV files: what separates their fields, and what is wrong with a line.

A record that cannot be read takes its first line with it and no more: the lines after it are read
again as records of their own.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from litotes.core.errors import UserError
from litotes.data.tables.files import BEGINNING, MAX_CHARS, Start, read_lines

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHERS = ";\t|,"
_EXCEL_HINT = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""A first line by which Excel is told the delimiter; it is no record."""
_TOO_LONG = "too long"


class Record(NamedTuple):
    """line: the one it begins in. problem: why the fields are only what could be made out."""

    line: int
    fields: list[str]
    problem: str | None = None


def find_delimiter(path: Path, kind: str, needs: Collection[str] = ()) -> str:
    """What the header separates its columns with: usually what the file's name says; many programs
    write a .csv with semicolons, tabs or bars.
    """
    usual = DELIMITERS[kind]
    if not path.is_file():  # a pipe cannot be read twice
        return usual
    _, header = next(read_lines(path, lenient=True), (0, ""))
    hint = _EXCEL_HINT.fullmatch(header)
    if hint is not None:
        return hint[1]
    columns = {delimiter: _split(header, delimiter) for delimiter in (usual, *_OTHERS)}
    if len(columns[usual]) > 1 and set(needs) <= set(columns[usual]):
        return usual
    return max(columns, key=lambda each: (set(needs) <= set(columns[each]), len(columns[each])))


def _split(line: str, delimiter: str) -> list[str]:
    try:
        fields = next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])
    except csv.Error:  # reported when the file is read
        return []
    return [field.strip() for field in fields]


def read_records(
    path: Path,
    *,
    delimiter: str = ",",
    quotes: bool = True,
    start: Start = BEGINNING,
    width: int | None = None,
    lenient: bool = False,
) -> Iterator[Record]:
    """The records of a delimited file; an empty file is refused, blank lines are skipped.

    width: the number of fields, None: that of the first record. lenient: a record that cannot be
    read is yielded with its problem; otherwise the problem is raised.
    """
    read = _read_quoted if quotes else _read_unquoted
    lines = _Lines(_without_hint(path, start, lenient))
    is_empty = True
    for record in read(path, lines, delimiter):
        if record.problem is not None and not lenient:
            raise UserError(record.problem)
        if not record.fields:
            continue
        is_empty = False
        width = width or len(record.fields)
        is_whole = record.problem is None
        if lenient and is_whole and len(record.fields) != width and lines.n_taken > 1:
            # a quote that was never meant to be one has swallowed the lines after it
            yield lines.give_up(_wrong_quote(f"{path}, line {record.line}"), delimiter)
        else:
            yield record
    if is_empty:
        raise UserError(f"{path} is empty: give a file with a header line and at least one row.")


def _without_hint(path: Path, start: Start, lenient: bool) -> Iterator[tuple[int, str]]:
    lines = read_lines(path, start=start, lenient=lenient)
    for number, line in lines:
        if number > 1 or _EXCEL_HINT.fullmatch(line) is None:
            yield number, line


class _Lines:
    """The lines of a file, of which those of the record being read can be given back."""

    def __init__(self, source: Iterator[tuple[int, str]]) -> None:
        self._source = source
        self._given_back: deque[tuple[int, str]] = deque()
        self._taken: list[str] = []
        self._n_chars = 0
        self.first = 0
        """The number of the line that the record begins in."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = self._given_back.popleft() if self._given_back else next(self._source)
        if not self._taken:
            self.first = number
        self._taken.append(line)
        self._n_chars += len(line)
        # an unclosed quote would swallow the rest of the file
        if self._n_chars > MAX_CHARS and len(self._taken) > 1:
            raise csv.Error(_TOO_LONG)
        return line

    @property
    def n_taken(self) -> int:
        """Of the record being read."""
        return len(self._taken)

    @property
    def taken(self) -> Sequence[str]:
        return self._taken

    def begin_record(self) -> None:
        self._taken.clear()
        self._n_chars = 0

    def give_up(self, problem: str, delimiter: str) -> Record:
        """The first line as a record with a problem; the others are given back."""
        line, *others = self._taken
        numbered = list(enumerate(others, start=self.first + 1))
        self._given_back.extendleft(reversed(numbered))
        return Record(self.first, _split(line, delimiter) or [line.strip()], problem)


def _read_unquoted(path: Path, lines: _Lines, delimiter: str) -> Iterator[Record]:
    lines.begin_record()
    for line in lines:
        content = line.rstrip("\r\n")
        yield Record(lines.first, content.split(delimiter) if content else [])
        lines.begin_record()


def _read_quoted(path: Path, lines: _Lines, delimiter: str) -> Iterator[Record]:
    # A limit of the whole process, and by default too low for the texts we allow; it is only ever
    # raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CHARS))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_record()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            place = f"{path}, line {lines.first}"
            problem = _bad_quotes(place, lines.taken, delimiter, str(error))
            yield lines.give_up(problem, delimiter)
        else:
            yield Record(lines.first, fields)


def _bad_quotes(place: str, lines: Sequence[str], delimiter: str, reason: str) -> str:
    if reason == _TOO_LONG:
        return (
            f"{place}: the record that begins here is longer than {MAX_CHARS:,} characters. Look"
            " for a quote that is opened and never closed."
        )
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


def _wrong_quote(place: str) -> str:
    return (
        f"{place}: a quote is opened here and does not end with its field. Close it, or double the"
        " quotes that belong to the text."
    )
