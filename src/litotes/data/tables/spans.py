"""Tables cut into spans of rows that can be read one without the other, by other processes or
another day.

    Parquet            the rows are counted in the file's own list of row groups
    JSONL, CSV, TSV    one look through the file finds the line, another its first byte; a span begins by jumping there

A .gz file has no such place to jump to: it is unpacked up to the span (and not parsed), which costs
little beside scoring.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.delimited import DELIMITERS, read_records
from litotes.data.tables.files import Start, raw_lines, read_lines, require_file
from litotes.data.tables.parquet import open_parquet
from litotes.data.tables.row import Row
from litotes.data.tables.rows import kind_of, read_rows


@dataclass(frozen=True)
class Span:
    """Rows of one file that follow each other."""

    file: str
    start: Start
    n_rows: int

    def rows(self, needs: Collection[str]) -> Iterator[Row]:
        """As many as there were when the file was cut."""
        n_read = 0
        for row in islice(read_rows(Path(self.file), needs=needs, start=self.start), self.n_rows):
            n_read += 1
            yield row
        if n_read < self.n_rows:
            raise UserError(
                f"{self.file} has become shorter since its rows were counted: begin anew, with"
                " another --out."
            )


def find_tables(source: Path) -> list[Path]:
    """The file itself, or all tables of a folder and the folders in it, by name; names that begin
    with . or _ are passed over.
    """
    if not source.is_dir():
        require_file(source)
        kind_of(source)
        return [source]
    found = [
        path
        for path in sorted(source.rglob("*"))
        if path.is_file() and not _is_hidden(path.relative_to(source))
    ]
    if not found:
        raise UserError(
            f"{source} holds no tables: name a folder of .parquet, .jsonl, .csv or .tsv files."
        )
    for path in found:
        kind_of(path)  # a file that is no table is told before anything is read
    return found


def cut_spans(path: Path, *, n_rows: int, needs: Collection[str]) -> list[Span]:
    """The whole table in spans of up to n_rows; none where it has no rows.

    The columns in `needs` must be there.
    """
    kind = kind_of(path)
    if kind == ".parquet":
        with open_parquet(path) as file:
            n_total = file.metadata.num_rows
        starts = [Start(row=row) for row in range(0, n_total, n_rows)]
    else:
        lines, n_total = _lines_at(_row_lines(path, kind), n_rows)
        offsets = _offsets_of(path, lines)
        starts = [Start(place * n_rows, line, offsets[line]) for place, line in enumerate(lines)]
    spans = [Span(str(path), start, min(n_rows, n_total - start.row)) for start in starts]
    if spans:
        next(spans[0].rows(needs))  # the columns
    return spans


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _row_lines(path: Path, kind: str) -> Iterator[int]:
    """The line every row begins in."""
    if kind in DELIMITERS:
        # after the header
        yield from (
            line for line, _ in islice(read_records(path, delimiter=DELIMITERS[kind]), 1, None)
        )
    else:
        yield from (number for number, line in read_lines(path) if line.strip())


def _lines_at(lines: Iterator[int], every: int) -> tuple[list[int], int]:
    """The first of every so many, and how many there are."""
    chosen, n_total = [], 0
    for line in lines:
        if n_total % every == 0:
            chosen.append(line)
        n_total += 1
    return chosen, n_total


def _offsets_of(path: Path, lines: list[int]) -> dict[int, int]:
    wanted = set(lines)
    return {number: offset for number, offset, _ in raw_lines(path) if number in wanted}
