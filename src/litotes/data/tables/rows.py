"""Any table as rows; the end of its name tells how it is read."""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.registry import unknown_name
from litotes.core.text import is_utf8
from litotes.data.tables.files import (
    BEGINNING,
    MAX_CHARS,
    Line,
    Start,
    read_lines,
    text_lines,
    too_long,
)

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Row:
    """One record of a table: its values by column, as text, and where it stands.

    found: the values as they were, where the file has more types than text (JSON, Parquet); also
    those of columns that no one needs as text. problem: why the row cannot be used, as anyone who
    asks for a text, a word or a number of it is told; its values are what could be made out.
    """

    file: str
    number: int
    values: Mapping[str, str]
    unit: str = "line"
    found: Mapping[str, object] = field(default_factory=dict)
    problem: str | None = None

    def at(self, column: str) -> str:
        """Says where the value of a column stands, for error messages."""
        return f"{self.file}, {self.unit} {self.number}, column {column!r}"

    def value(self, column: str) -> object:
        """Gets a column's value, of the type it has in the file; None where the row has no such."""
        return self.found.get(column, self.values.get(column))

    def text(self, column: str) -> str:
        """The text in a column, which must not be empty."""
        self.require_whole()
        text = self.values[column]
        if not text.strip():
            raise UserError(f"{self.at(column)} is empty: give the row a text, or take it out.")
        if len(text) > MAX_CHARS:
            raise UserError(too_long(self.at(column)))
        check_characters(text, self.at(column))
        return text

    def require_whole(self) -> None:
        """Refuses a row that cannot be used."""
        if self.problem is not None:
            raise UserError(self.problem)

    def word(self, column: str) -> str | None:
        """The word in a column; None where it is empty, absent or NaN."""
        self.require_whole()
        word = self.values.get(column, "").strip()
        return None if word.casefold() in ("", "nan") else word

    def require_word(self, column: str, known: Collection[str] = ()) -> str:
        """The word in a column that must have one."""
        if (word := self.word(column)) is None:
            wanted = f"give it one of {', '.join(known)}" if known else "fill it in"
            raise UserError(f"{self.at(column)} is empty: {wanted}, or take the row out.")
        return word

    def as_number(self, column: str) -> float:
        """The number in a column that must have one."""
        word = self.require_word(column)
        try:
            number = float(word)
        except ValueError:
            number = inf
        if not isfinite(number):
            raise UserError(
                f"{self.at(column)}: {word!r} is not a number. Mend it, or take the row out."
            )
        return number

    def translate(
        self, column: str, words: Mapping[str, str] | Collection[str], kind: str = "label"
    ) -> str:
        """Finds what the word in a column stands for; the keys of `words` are in lower case."""
        if not isinstance(words, Mapping):  # each stands for itself
            words = {word: word for word in words}
        word = self.word(column)
        if word is not None and word.casefold() in words:
            return words[word.casefold()]
        # in the case that the meaning has, where the two differ in nothing else
        known = sorted(
            meaning if meaning.casefold() == spelling else spelling
            for spelling, meaning in words.items()
        )
        found = self.require_word(column, known)
        raise UserError(f"{self.at(column)}: {unknown_name(found, known, kind)}")


def require_columns(place: str, columns: Collection[str], needs: Collection[str]) -> None:
    """Refuses a table that lacks a column, naming those it has."""
    for column in needs:
        if column not in columns:
            raise UserError(f"{place}: {unknown_name(column, filter(None, columns), 'column')}")


def require_once(place: str, columns: Sequence[str], column: str) -> None:
    """Refuses a column of whose name there are several: either could be meant."""
    if (n_times := columns.count(column)) > 1:
        raise UserError(
            f"{place}: the column {column!r} is there {n_times} times. Rename all but one."
        )


def check_characters(text: str, place: str) -> None:
    """Refuses what JSON can spell and nothing can store."""
    if not _is_storable(text):
        raise UserError(
            f"{place} holds a NUL or half a surrogate pair, which is not text: take it out."
        )


def character_problem(fields: Iterable[str], place: str) -> str | None:
    """Says what is wrong with the bytes that these fields were read from."""
    if all(map(_is_storable, fields)):
        return None
    return f"{place} holds a NUL or bytes that are not UTF-8 text. Save it as UTF-8."


def replace_characters(text: str) -> str:
    """The text with a replacement mark for all that is no text, so that it can be written."""
    return text if _is_storable(text) else _NO_TEXT.sub("\ufffd", text)


def _is_storable(text: str) -> bool:
    return "\0" not in text and is_utf8(text)


def as_text(value: object, place: str) -> str:
    """A value of a JSON or Parquet cell as the text a CSV file would hold."""
    if value is None or value != value:  # only NaN differs from itself
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        text = str(value)
        check_characters(text, place)
        return text
    raise UserError(f"{place} holds a {type(value).__name__}: make it a text or a number.")


# The records of CSV and TSV files: what separates their fields, and what is wrong with a line.
#
# A record that cannot be read takes its first line with it and no more: the lines after it are
# read
# again as records of their own.

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHERS = ";\t|,"
_EXCEL_HINT = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""A first line by which Excel is told the delimiter; it is no record."""
_TOO_LONG = "too long"


class Record(NamedTuple):
    """first: the line it begins in. problem: why the fields are only what could be made out."""

    first: Line
    fields: list[str]
    problem: str | None = None


def find_delimiter(path: Path, kind: str, needs: Collection[str] = ()) -> str:
    """Finds what separates the header's columns: usually what the file's name says; many programs
    write a .csv with semicolons, tabs or bars.
    """
    usual = DELIMITERS[kind]
    if not path.is_file():  # a pipe cannot be read twice
        return usual
    first = next(read_lines(path), None)
    header = "" if first is None else first.text
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
) -> Iterator[Record]:
    """The records of a delimited file; an empty file is refused, blank lines are skipped.

    width: the number of fields, None: that of the first record.
    """
    # A limit of the whole process, and by default too low for the texts we allow; it is only ever
    # raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CHARS))
    lines = _Lines(read_lines(path, start=start))
    reader = csv.reader(
        lines,
        delimiter=delimiter,
        strict=True,
        quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
    )
    while True:
        lines.taken.clear()
        problem = None
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            problem = _bad_quotes(path, lines.taken, delimiter, str(error))
        else:
            if not fields:
                continue
            if len(fields) != (width or len(fields)) and len(lines.taken) > 1:
                # a quote that was never meant to be one has swallowed the lines after it
                problem = (
                    f"{path}, line {lines.taken[0].number}: a quote is opened here and does not end"
                    " with its field. Close it, or double the quotes that belong to the text."
                )
        first = lines.taken[0]
        if problem is not None:
            lines.give_back_all_but_first()
            fields = _split(first.text, delimiter) or [first.text.strip()]
        width = width or len(fields)
        problems = [problem, *(line.problem for line in lines.taken)]
        yield Record(first, fields, next(filter(None, problems), None))
    if width is None:
        raise UserError(f"{path} is empty: give a file with a header line and at least one row.")


class _Lines:
    """The lines of a file, of which those of the record being read can be given back."""

    def __init__(self, source: Iterator[Line]) -> None:
        # a first line that tells Excel the delimiter is no record
        self._source = (
            line for line in source if line.number > 1 or not _EXCEL_HINT.fullmatch(line.text)
        )
        self._given_back: deque[Line] = deque()
        self.taken: list[Line] = []
        """The lines of the record being read."""
        self._n_chars = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._given_back.popleft() if self._given_back else next(self._source)
        self._n_chars = len(line.text) + (self._n_chars if self.taken else 0)
        self.taken.append(line)
        # an unclosed quote would swallow the rest of the file
        if self._n_chars > MAX_CHARS and len(self.taken) > 1:
            raise csv.Error(_TOO_LONG)
        return line.text

    def give_back_all_but_first(self) -> None:
        self._given_back.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]


def _bad_quotes(path: Path, lines: Sequence[Line], delimiter: str, reason: str) -> str:
    place = f"{path}, line {lines[0].number}"
    if reason == _TOO_LONG:
        return (
            f"{place}: the record that begins here is longer than {MAX_CHARS:,} characters. Look"
            " for a quote that is opened and never closed."
        )
    if reason == "unexpected end of data":
        # a lenient second look ends in the field left open
        column = len(next(csv.reader((line.text for line in lines), delimiter=delimiter)))
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


# CSV and TSV files as rows, with every mistake in their quotes and widths named by its line.


def read_delimited(
    path: Path, delimiter: str, needs: Collection[str], *, quotes: bool, start: Start
) -> Iterator[Row]:
    """The rows of a file whose first record names the columns."""
    records = read_records(path, delimiter=delimiter, quotes=quotes)
    header = read_header(path, next(records), needs)
    if start.row:
        width = len(header)
        records = read_records(path, delimiter=delimiter, quotes=quotes, start=start, width=width)
    yield from rows_from(path, header, records)


def read_header(path: Path, record: Record, needs: Collection[str] = ()) -> list[str]:
    """Reads the columns' names from a first record; the second that is called x is called x.2."""
    place = f"{path}, line {record.first.number}"
    if record.problem is not None:
        raise UserError(record.problem)
    names = [field.strip() for field in record.fields]
    require_columns(place, names, needs)
    for column in needs:
        require_once(place, names, column)
    # rows know their columns by name
    header: list[str] = []
    for number, name in enumerate(names):
        n_before = names[:number].count(name)
        found = f"{name}.{n_before + 1}" if n_before else name
        while found in header or (n_before and found in names):
            found += "_"
        header.append(found)
    return header


def rows_from(path: Path, header: Sequence[str], records: Iterable[Record]) -> Iterator[Row]:
    """Records as rows; each must have as many fields as the header has columns."""
    for first, fields, problem in records:
        if problem is None and len(fields) != len(header):
            problem = _wrong_width(f"{path}, line {first.number}", header, len(fields))
        if problem is not None:
            fields = [replace_characters(field) for field in fields]
        values = dict(zip(header, fields, strict=False))
        yield Row(str(path), first.number, values, problem=problem)


def _wrong_width(place: str, header: Sequence[str], n_fields: int) -> str:
    should = f"there should be {len(header)} ({', '.join(header)})"
    sentence = f"{place} has {counted(n_fields, 'field')} where {should}."
    if n_fields < len(header):
        return (
            f"{sentence} The first one missing is {header[n_fields]!r}: fill it in, or take the row"
            " out."
        )
    return f"{sentence} Put quotes around a text that holds the delimiter."


# JSON: one object a line, or in a .json file one array of objects.

JSON_FILES = (".jsonl", ".ndjson", ".json")
_MAX_ARRAY_CHARS = 64 * MAX_CHARS
"""The most characters of an array, which is read as a whole."""


def read_json(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    """The rows of a file."""
    is_first = True
    for number, unit, content in _contents(path, start):
        place = f"{path}, {unit} {number}"
        record = content if isinstance(content, dict) else {}
        try:
            values = _texts(content, needs, place)
            # all of it may be written again
            check_characters(json.dumps(content, ensure_ascii=False), place)
        except UserError as error:
            # of a first row without a column, it is more likely that the column has another name
            if is_first and record and not set(needs) <= set(record):
                raise
            storable = json.loads(replace_characters(json.dumps(record, ensure_ascii=False)))
            yield Row(str(path), number, {}, unit, storable, str(error))
        else:
            yield Row(str(path), number, values, unit, record)
        is_first = False


def _contents(path: Path, start: Start) -> Iterator[tuple[int, str, Any]]:
    """Number, unit and content of each row; of a line that is no JSON, the error."""
    if is_array(path):
        for number, record in islice(enumerate(read_array(path), start=1), start.row, None):
            yield number, "item", record
        return
    for line in read_lines(path, start=start):
        if line.text.strip():  # blank lines are skipped
            yield line.number, "line", _parse(path, line)


def _texts(content: Any, needs: Collection[str], place: str) -> dict[str, str]:
    """Reads the columns that are needed, as text."""
    if isinstance(content, UserError):
        raise content
    if not isinstance(content, dict):
        raise UserError(f'{place} is not a JSON object: write each row as {{"text": …, …}}.')
    require_columns(place, content, needs)
    return {key: as_text(content[key], f"{place}, column {key!r}") for key in needs}


def is_array(path: Path) -> bool:
    """Tells whether the file is one array of objects, and not one object a line."""
    is_json = path.name.lower().removesuffix(".gz").endswith(".json")
    if not is_json or not path.is_file():  # a pipe cannot be read twice
        return False
    texts = (line.text.strip() for line in read_lines(path))
    return next(filter(None, texts), "").startswith("[")


def read_array(path: Path) -> list[Any]:
    """The items of a file that is one array."""
    content, n_chars = [], 0
    for _, line in text_lines(path):
        n_chars += len(line)
        if n_chars > _MAX_ARRAY_CHARS:
            raise UserError(
                f"{path} is an array of more than {_MAX_ARRAY_CHARS // MAX_CHARS} million"
                " characters: save it as JSON lines, one object a line, which are read one by one."
            )
        content.append(line)
    try:
        records: list[Any] = json.loads("\n".join(content))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} begins like an array but is not JSON ({error}). Save it again, or write one"
            " object a line."
        ) from error
    return records


def _parse(path: Path, line: Line) -> Any:
    if line.problem is not None:
        return UserError(line.problem)
    try:
        return json.loads(line.text.rstrip())
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg}, character {error.colno}"
        place = f"{path}, line {line.number}"
        return UserError(f"{place} is not JSON ({reason}). Each line must be one JSON object.")


# A file of texts, one a line: a table whose only column is `text`.

PLAIN_TEXT = ".txt"
COLUMN = "text"


def read_plain_text(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    """Every line is a row, an empty one too: left out, it would shift the numbers of the others."""
    require_columns(str(path), [COLUMN], needs)
    for line in read_lines(path, start=start):
        text = replace_characters(line.text.rstrip("\r\n"))
        yield Row(str(path), line.number, {COLUMN: text}, problem=line.problem)
