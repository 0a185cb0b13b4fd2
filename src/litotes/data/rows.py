"""Tables as rows that know their place: CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import unknown
from litotes.data.files import BEGINNING, MAX_CHARS, Start, read_lines, require_file, too_long

Record = tuple[int, list[str]]
"""The line a record begins in, and its fields."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class Row:
    """One record of a table: its values by column, as text, and where it stands.

    found: the values as they were, where the file knows more kinds than text (JSON, Parquet).
    """

    file: str
    number: int
    values: Mapping[str, str]
    unit: str = "line"
    found: Mapping[str, object] = field(default_factory=dict)

    def at(self, column: str) -> str:
        """Where the value of a column stands, for error messages."""
        return f"{self.file}, {self.unit} {self.number}, column {column!r}"

    def value(self, column: str) -> object:
        """What a column holds, of the kind it has in the file."""
        return self.found.get(column, self.values[column])

    def text(self, column: str) -> str:
        """The text in a column, which must not be empty."""
        text = self.values[column]
        if not text.strip():
            raise UserError(f"{self.at(column)} is empty: give the row a text, or take it out.")
        if len(text) > MAX_CHARS:
            raise UserError(too_long(self.at(column)))
        if not _is_sound(text):
            raise UserError(
                f"{self.at(column)} holds a NUL or half a surrogate pair, which is no text: take it"
                " out."
            )
        return text

    def word(self, column: str) -> str | None:
        """The word in a column; None where it is empty, absent or NaN."""
        word = self.values.get(column, "").strip()
        return None if word.casefold() in ("", "nan") else word

    def required(self, column: str, known: Collection[str] = ()) -> str:
        """The word in a column that must have one."""
        if (word := self.word(column)) is None:
            wanted = f"give it one of {', '.join(known)}" if known else "fill it in"
            raise UserError(f"{self.at(column)} is empty: {wanted}, or take the row out.")
        return word

    def as_number(self, column: str) -> float:
        """The number in a column that must have one."""
        word = self.required(column)
        try:
            number = float(word)
        except ValueError:
            number = inf
        if not isfinite(number):
            raise UserError(
                f"{self.at(column)}: {word!r} is no number. Mend it, or take the row out."
            )
        return number

    def translated(self, column: str, words: Mapping[str, str], kind: str = "label") -> str:
        """What the word in a column stands for; the keys of `words` are in lower case."""
        word = self.word(column)
        if word is not None and word.casefold() in words:
            return words[word.casefold()]
        known = sorted(
            meant if meant.casefold() == spelling else spelling for spelling, meant in words.items()
        )
        raise UserError(f"{self.at(column)}: {unknown(self.required(column, known), known, kind)}")


def kind_of(path: Path) -> str:
    """The end of the file's name, which tells how it is read: .csv, .tsv, .jsonl or .parquet."""
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind in DELIMITERS:
        return kind
    if kind in _JSON_LINES:
        return ".jsonl"
    if path.suffix.lower() == ".parquet":
        return ".parquet"
    raise UserError(
        f"{path} is no table that can be read: save it as .csv, .tsv or .jsonl (each also with"
        " .gz), or as .parquet."
    )


def read_rows(
    path: Path, *, needs: Collection[str], quotes: bool = True, start: Start = BEGINNING
) -> Iterator[Row]:
    """The rows of a table, its kind told by the file's name; the columns in `needs` must be there."""
    require_file(path)
    kind = kind_of(path)
    if kind in DELIMITERS:
        rows = _with_header(path, DELIMITERS[kind], needs, quotes=quotes, start=start)
    elif kind == ".jsonl":
        rows = _json_rows(path, needs, start)
    else:
        rows = _parquet_rows(path, needs, start)
    if (first := next(rows, None)) is None:
        raise UserError(f"{path} has no rows: give a file with at least one text in it.")
    yield first
    yield from rows


def read_records(
    path: Path, *, delimiter: str = ",", quotes: bool = True, start: Start = BEGINNING
) -> Iterator[Record]:
    """The records of a delimited file; an empty file is refused, blank lines are passed over."""
    all_records = _quoted(path, delimiter, start) if quotes else _unquoted(path, delimiter, start)
    records = (record for record in all_records if record[1])
    if (first := next(records, None)) is None:
        raise UserError(f"{path} is empty: give a file with a header line and at least one row.")
    yield first
    yield from records


def tabulated(path: Path, header: Sequence[str], records: Iterator[Record]) -> Iterator[Row]:
    """Records as rows; each must have as many fields as the header has columns."""
    for line, fields in records:
        if len(fields) != len(header):
            raise UserError(_wrong_width(f"{path}, line {line}", header, len(fields)))
        yield Row(str(path), line, dict(zip(header, fields, strict=True)))


def require_columns(place: str, columns: Collection[str], needs: Collection[str]) -> None:
    """Refuse a table that lacks a column, naming those it has."""
    for column in needs:
        if column not in columns:
            raise UserError(f"{place}: {unknown(column, filter(None, columns), 'column')}")


def as_text(value: object, place: str) -> str:
    """A value of a JSON or Parquet cell as the text a CSV file would hold."""
    if value is None or value != value:  # only NaN differs from itself
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise UserError(f"{place} holds a {type(value).__name__}: make it a text or a number.")


def _is_sound(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell and nothing can store
        return False


def _with_header(
    path: Path, delimiter: str, needs: Collection[str], *, quotes: bool, start: Start
) -> Iterator[Row]:
    records = read_records(path, delimiter=delimiter, quotes=quotes)
    line, fields = next(records)
    header = [field.strip() for field in fields]
    place = f"{path}, line {line}"
    require_columns(place, header, needs)
    for column in needs:
        if header.count(column) > 1:
            raise UserError(
                f"{place}: the column {column!r} is there {header.count(column)} times. Rename all"
                " but one."
            )
    if start.row:
        records = read_records(path, delimiter=delimiter, quotes=quotes, start=start)
    yield from tabulated(path, header, records)


def _wrong_width(place: str, header: Sequence[str], n_fields: int) -> str:
    there = "1 field" if n_fields == 1 else f"{n_fields} fields"
    start = f"{place} has {there} where there should be {len(header)} ({', '.join(header)})."
    if n_fields < len(header):
        return (
            f"{start} The first one missing is {header[n_fields]!r}: fill it in, or take the row"
            " out."
        )
    return f"{start} Put quotes around a text that holds the delimiter."


def _unquoted(path: Path, delimiter: str, start: Start) -> Iterator[Record]:
    for number, line in read_lines(path, start=start):
        content = line.rstrip("\r\n")
        yield number, content.split(delimiter) if content else []


def _quoted(path: Path, delimiter: str, start: Start) -> Iterator[Record]:
    # A limit of the whole process, and by default too low for the texts we allow; it is only ever
    # raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CHARS))
    lines: list[str] = []  # of the record being read
    reader = csv.reader(_fed(path, lines, start), delimiter=delimiter, strict=True)
    while True:
        first = start.line + reader.line_num
        lines.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                _bad_quotes(f"{path}, line {first}", lines, delimiter, str(error))
            ) from error
        yield first, fields


def _fed(path: Path, lines: list[str], start: Start) -> Iterator[str]:
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


def _json_rows(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    for number, line in read_lines(path, start=start):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            record = json.loads(line.rstrip())
        except (ValueError, RecursionError) as error:
            reason = (
                f"{error.msg}, character {error.colno}"
                if isinstance(error, json.JSONDecodeError)
                else str(error)
            )
            raise UserError(
                f"{place} is not JSON ({reason}). Each line must be one JSON object."
            ) from error
        if not isinstance(record, dict):
            raise UserError(
                f'{place} is no JSON object: write each row as {{"text": …, …}} on a line of its'
                " own."
            )
        require_columns(place, record, needs)
        values = {key: as_text(record[key], f"{place}, column {key!r}") for key in needs}
        yield Row(str(path), number, values, found={key: record[key] for key in needs})


def _parquet_rows(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    with opened_parquet(path) as file:
        require_columns(str(path), file.schema_arrow.names, needs)
        for number, record in enumerate(
            _parquet_records(file, list(dict.fromkeys(needs)), start.row), start=start.row + 1
        ):
            values = {
                key: as_text(value, f"{path}, row {number}, column {key!r}")
                for key, value in record.items()
            }
            yield Row(str(path), number, values, unit="row", found=record)


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """A pyarrow ParquetFile; what is wrong with it while it is read is told in a sentence."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UserError(
            f"{path} is a Parquet file, which needs the package pyarrow: pip install"
            " 'litotes[parquet]'."
        ) from error
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} is not a Parquet file, or a damaged one: write it again ({error})."
        ) from error


def _parquet_records(file: Any, columns: list[str], n_before: int) -> Iterator[dict[str, Any]]:
    """Records after the first n_before.

    Row groups that lie before are not read; in the one cut through, rows are passed over.
    """
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    first = 0
    while first < len(sizes) and n_before >= sizes[first]:
        n_before -= sizes[first]
        first += 1
    for batch in file.iter_batches(
        batch_size=256, row_groups=list(range(first, len(sizes))), columns=columns
    ):
        yield from batch.slice(n_before).to_pylist()
        n_before = max(n_before - batch.num_rows, 0)
