"""Rows with their answers as the content of a file: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.text import guard_formula
from litotes.data.tables.row import as_text, replace_characters
from litotes.prediction.columns import STRING, answers_as_json
from litotes.prediction.frames import arrow_array
from litotes.prediction.tables.layout import AnsweredRow, Layout

Rows = Sequence[AnsweredRow]


@dataclass(frozen=True)
class LineFormat:
    """A format that can be written row by row.

    header: what stands before the first row; rows: the lines of rows.
    """

    header: Callable[[Layout], str]
    rows: Callable[[Layout, Rows], str]

    def encode(self, layout: Layout, rows: Rows) -> bytes:
        """A whole file."""
        return (self.header(layout) + self.rows(layout, rows)).encode()


def cell_text(value: object) -> str:
    """A value of any type as the text of a cell; what is neither text nor number is JSON."""
    if isinstance(value, list | dict):
        return to_json(value)
    if isinstance(value, str):  # with a mark for what is no text: one cell ends no run
        return replace_characters(value)
    return as_text(value, "a column that is kept")


def _csv_header(layout: Layout) -> str:
    names = layout.names
    return _csv_lines([names if layout.keep_formulas else list(map(guard_formula, names))])


def _csv_rows(layout: Layout, rows: Rows) -> str:
    columns = [_kept_cells(name, layout, rows) for name in layout.kept]
    predictions = [row.prediction for row in rows]
    for column in layout.answers:
        cells = column.values(predictions)
        if column.kind == STRING and not layout.keep_formulas:
            cells = [guard_formula(cell or "") for cell in cells]
        columns.append(cells)
    for row in rows:
        _check_known(row, layout)
    return _csv_lines(zip(*columns, strict=True))


def _kept_cells(name: str, layout: Layout, rows: Rows) -> list[str]:
    cells = [cell_text(row.kept.get(name)) for row in rows]
    if layout.keep_formulas:
        return cells
    return list(map(guard_formula if name in layout.texts else _guard_unless_number, cells))


def _guard_unless_number(cell: str) -> str:
    """-5 is no formula."""
    try:
        float(cell)
    except ValueError:
        return guard_formula(cell)
    return cell


def _check_known(row: AnsweredRow, layout: Layout) -> None:
    """Only the columns of what is no ordinary file can come as a surprise."""
    for name in row.kept:
        if name not in layout.kept:
            raise UserError(
                f"A row has the column {name!r}, which the rows before have not: save the input to"
                " a file, or write --format jsonl."
            )


def _csv_lines(rows: Iterable[Iterable[object]]) -> str:
    target = StringIO()
    csv.writer(target).writerows(rows)
    return target.getvalue()


def _no_header(_: Layout) -> str:
    return ""


def _jsonl_rows(layout: Layout, rows: Rows) -> str:
    return "".join(to_json(as_document(layout, row)) + "\n" for row in rows)


def as_document(layout: Layout, row: AnsweredRow) -> dict[str, Any]:
    """A row as one JSON object: its own columns, then its answers."""
    answers = answers_as_json(row.prediction, layout.tasks, prefix=layout.prefix)
    return {**row.kept, **answers}


def encode_parquet(layout: Layout, rows: Rows, kept: Any = None) -> bytes:
    """A whole file. kept: the columns of the input as a pyarrow Table, where it has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kept is None:
        arrays = {name: _arrow_cells(name, layout, rows) for name in layout.kept}
        kept = pa.table(arrays)
    predictions = [row.prediction for row in rows]
    for column in layout.answers:
        values = arrow_array(column.values(predictions), column.kind)
        kept = kept.append_column(column.name, values)
    target = BytesIO()
    pq.write_table(kept, target)
    return target.getvalue()


def _arrow_cells(name: str, layout: Layout, rows: Rows) -> Any:
    import pyarrow as pa

    cells = [row.kept.get(name) for row in rows]
    if name in layout.types:
        return pa.array(cells, pa.type_for_alias(layout.types[name]))
    return pa.array([None if cell is None else cell_text(cell) for cell in cells], pa.string())


CSV = LineFormat(_csv_header, _csv_rows)
JSONL = LineFormat(_no_header, _jsonl_rows)

LINE_FORMATS = {"csv": CSV, "jsonl": JSONL}
"""Formats of a file that grows row by row."""

FORMATS: dict[str, Callable[[Layout, Rows], bytes]] = {
    "parquet": encode_parquet,
    "jsonl": JSONL.encode,
    "csv": CSV.encode,
}
"""Formats of a part, which is written in one piece."""
