"""A part of the answers as the bytes of a file: Parquet, JSON lines or CSV, with the names that
`litotes predict` gives its columns.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

from litotes.core.values import Prediction, Task
from litotes.data.rows import as_text
from litotes.predict.frames import arrow_array, columns_of
from litotes.predict.tables.file import as_json

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
"""Of a key in Parquet files, kept as they are; every other kind of key is written as text."""

TEXT = "string"


@dataclass(frozen=True)
class Answers:
    """A part's predictions with the key of each row. key: its column's name, or None; key_type: one
    of KEY_TYPES, or TEXT.
    """

    tasks: Mapping[str, Task]
    predictions: Sequence[Prediction]
    key: str | None
    key_type: str
    keys: Sequence[object]
    has_text: bool


def _parquet(answers: Answers) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    if answers.key is not None:
        keys = (
            answers.keys
            if answers.key_type != TEXT
            else [None if key is None else _written(key) for key in answers.keys]
        )
        columns[answers.key] = pa.array(keys, pa.type_for_alias(answers.key_type))
    if answers.has_text:
        columns["text"] = pa.array(
            [prediction.text for prediction in answers.predictions], pa.string()
        )
    columns |= {
        column.name: arrow_array(column)
        for column in columns_of(answers.tasks, answers.predictions)
    }
    target = BytesIO()
    pq.write_table(pa.table(columns), target)
    return target.getvalue()


def _jsonl(answers: Answers) -> bytes:
    return "".join(
        json.dumps(line, ensure_ascii=False) + "\n" for line in _json_lines(answers)
    ).encode()


def _json_lines(answers: Answers) -> list[dict[str, Any]]:
    lines = [as_json(prediction) for prediction in answers.predictions]
    if not answers.has_text:
        lines = [{name: value for name, value in line.items() if name != "text"} for line in lines]
    if answers.key is None:
        return lines
    keys = (None if key != key else key for key in answers.keys)  # JSON has no NaN
    return [{answers.key: key, **line} for key, line in zip(keys, lines, strict=True)]


def _csv(answers: Answers) -> bytes:
    columns = columns_of(answers.tasks, answers.predictions)
    named: dict[str, Sequence[object]] = {}
    if answers.key is not None:
        named[answers.key] = [_written(key) for key in answers.keys]
    if answers.has_text:
        named["text"] = [prediction.text for prediction in answers.predictions]
    named |= {column.name: column.values for column in columns}
    target = StringIO()
    writer = csv.writer(target)
    writer.writerow(named)
    writer.writerows(zip(*named.values(), strict=True))
    return target.getvalue().encode()


def _written(key: object) -> str:
    return as_text(key, "the key")


PART_FORMATS: dict[str, Callable[[Answers], bytes]] = {
    "parquet": _parquet,
    "jsonl": _jsonl,
    "csv": _csv,
}
