"""Predictions as the content of a file: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

from litotes.core.harmless import guard_formula
from litotes.core.json_text import to_json
from litotes.core.values import Prediction
from litotes.data.tables.row import as_text
from litotes.prediction.columns import STRING, Column, as_json
from litotes.prediction.frames import arrow_array

KEY_TYPES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float",
    "double",
    "bool",
)
"""Arrow's names for the types that a key keeps in Parquet; a key of any other type becomes text."""

TEXT_KEY = "string"


@dataclass(frozen=True)
class Key:
    """The column of the input that is copied to the output, to say which row is meant.

    type: one of KEY_TYPES, or TEXT_KEY. values: one for each prediction.
    """

    name: str
    type: str
    values: Sequence[object]


@dataclass(frozen=True)
class PredictionTable:
    """Rows to write: these columns of these predictions, behind the key where there is one.

    keep_formulas: whether a CSV cell may begin like a formula, which a spreadsheet would compute.
    """

    columns: Sequence[Column]
    predictions: Sequence[Prediction]
    key: Key | None = None
    keep_formulas: bool = False


@dataclass(frozen=True)
class LineFormat:
    """A format that can be written row by row.

    header: what stands before the first row; rows: the lines of a table.
    """

    header: Callable[[PredictionTable], str]
    rows: Callable[[PredictionTable], str]

    def encode(self, table: PredictionTable) -> bytes:
        """A whole file."""
        return (self.header(table) + self.rows(table)).encode()


def _csv_header(table: PredictionTable) -> str:
    names = [column.name for column in table.columns]
    if table.key is not None:
        names.insert(0, table.key.name)
    return _csv_lines([names if table.keep_formulas else list(map(guard_formula, names))])


def _csv_rows(table: PredictionTable) -> str:
    values = []
    if table.key is not None:
        keys = [_key_as_text(key) for key in table.key.values]
        values.append(keys if table.keep_formulas else list(map(_guard_key, keys)))
    for column in table.columns:
        cells = column.values(table.predictions)
        is_guarded = column.kind == STRING and not table.keep_formulas
        values.append(list(map(guard_formula, cells)) if is_guarded else cells)
    return _csv_lines(zip(*values, strict=True))


def _guard_key(key: str) -> str:
    """A key that is a number stays one: -5 is no formula."""
    try:
        float(key)
    except ValueError:
        return guard_formula(key)
    return key


def _csv_lines(rows: Iterable[Iterable[object]]) -> str:
    target = StringIO()
    csv.writer(target).writerows(rows)
    return target.getvalue()


def _no_header(_: PredictionTable) -> str:
    return ""


def _jsonl_rows(table: PredictionTable) -> str:
    documents = _json_documents(table)
    return "".join(to_json(document) + "\n" for document in documents)


def _json_documents(table: PredictionTable) -> Iterator[dict[str, Any]]:
    if table.key is None:
        for prediction in table.predictions:
            yield as_json(prediction, table.columns)
        return
    for key, prediction in zip(table.key.values, table.predictions, strict=True):
        yield {table.key.name: key, **as_json(prediction, table.columns)}


def _encode_parquet(table: PredictionTable) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays: dict[str, Any] = {}
    if table.key is not None:
        arrays[table.key.name] = _arrow_key(table.key)
    for column in table.columns:
        arrays[column.name] = arrow_array(column.values(table.predictions), column.kind)
    target = BytesIO()
    pq.write_table(pa.table(arrays), target)
    return target.getvalue()


def _arrow_key(key: Key) -> Any:
    import pyarrow as pa

    values: list[object] = []
    for value in key.values:
        keeps_type = value is None or key.type != TEXT_KEY
        values.append(value if keeps_type else _key_as_text(value))
    return pa.array(values, pa.type_for_alias(key.type))


def _key_as_text(key: object) -> str:
    return as_text(key, "the key")


CSV = LineFormat(_csv_header, _csv_rows)
JSONL = LineFormat(_no_header, _jsonl_rows)

LINE_FORMATS = {"csv": CSV, "jsonl": JSONL}
"""Formats of a file that grows row by row."""

PART_FORMATS: dict[str, Callable[[PredictionTable], bytes]] = {
    "parquet": _encode_parquet,
    "jsonl": JSONL.encode,
    "csv": CSV.encode,
}
"""Formats of a part, which is written in one piece."""
