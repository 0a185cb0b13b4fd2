"""CSV and TSV files as rows, with every mistake in their quotes and widths named by its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.data.tables.files import Start
from litotes.data.tables.records import Record, read_records
from litotes.data.tables.row import Row, character_problem, replace_characters, require_columns


def read_delimited(
    path: Path,
    delimiter: str,
    needs: Collection[str],
    *,
    quotes: bool,
    start: Start,
    lenient: bool,
) -> Iterator[Row]:
    """The rows of a file whose first record names the columns."""
    records = read_records(path, delimiter=delimiter, quotes=quotes, lenient=lenient)
    header = _read_header(path, next(records), needs)
    if start.row:
        width = len(header)
        records = read_records(
            path, delimiter=delimiter, quotes=quotes, start=start, width=width, lenient=lenient
        )
    yield from rows_from(path, header, records, lenient=lenient)


def read_column_names(path: Path, delimiter: str) -> list[str]:
    """What the header calls the columns, as rows name them."""
    return _read_header(path, next(read_records(path, delimiter=delimiter, lenient=True)), ())


def _read_header(path: Path, record: Record, needs: Collection[str]) -> list[str]:
    place = f"{path}, line {record.line}"
    problem = record.problem or character_problem(record.fields, place)
    if problem is not None:
        raise UserError(problem)
    header = [field.strip() for field in record.fields]
    require_columns(place, header, needs)
    for column in needs:
        n_times = header.count(column)
        if n_times > 1:
            raise UserError(
                f"{place}: the column {column!r} is there {n_times} times. Rename all but one."
            )
    return _distinct(header)


def _distinct(names: Sequence[str]) -> list[str]:
    """The second column called x is called x.2: rows know their columns by name."""
    n_times: Counter[str] = Counter()
    distinct: list[str] = []
    for name in names:
        n_times[name] += 1
        found = name if n_times[name] == 1 else f"{name}.{n_times[name]}"
        while found in distinct or (found != name and found in names):
            found += "_"
        distinct.append(found)
    return distinct


def rows_from(
    path: Path, header: Sequence[str], records: Iterable[Record], *, lenient: bool = False
) -> Iterator[Row]:
    """Records as rows; each must have as many fields as the header has columns.

    lenient: a row that has not is yielded with its problem; otherwise the problem is raised.
    """
    for line, fields, problem in records:
        place = f"{path}, line {line}"
        if problem is None and len(fields) != len(header):
            problem = _wrong_width(place, header, len(fields))
        if lenient and problem is None:
            problem = character_problem(fields, place)
        if problem is not None:
            if not lenient:
                raise UserError(problem)
            fields = [replace_characters(field) for field in fields]
        yield Row(str(path), line, dict(zip(header, fields, strict=False)), problem=problem)


def _wrong_width(place: str, header: Sequence[str], n_fields: int) -> str:
    should = f"there should be {len(header)} ({', '.join(header)})"
    sentence = f"{place} has {counted(n_fields, 'field')} where {should}."
    if n_fields < len(header):
        return (
            f"{sentence} The first one missing is {header[n_fields]!r}: fill it in, or take the row"
            " out."
        )
    return f"{sentence} Put quotes around a text that holds the delimiter."
