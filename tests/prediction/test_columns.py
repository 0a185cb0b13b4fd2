"""One table of columns decides what every format holds."""

from __future__ import annotations

import csv
import json
from io import StringIO

import pytest

from litotes.core.values import Answer, Prediction, Task
from litotes.prediction.columns import BOOL, FLOAT, STRING, answer_columns, as_json, columns_of
from litotes.prediction.frames import add_predictions
from litotes.prediction.tables.formats import (
    CSV,
    JSONL,
    LINE_FORMATS,
    PART_FORMATS,
    LineFormat,
    PredictionTable,
)

TASKS = {"mood": Task("mood", ("bad", "good")), "warmth": Task("warmth", ())}
PREDICTIONS = [
    Prediction('a "tea", ä', {"mood": Answer("good", 0.75), "warmth": Answer(2.5, None)}, False),
    Prediction("two\nlines", {"mood": Answer("bad", 0.5), "warmth": Answer(-1.0, None)}, True),
    Prediction("🫨", {"mood": Answer("bad", 0.9), "warmth": Answer(0.0, None)}, False, True),
]
ANSWERS = ["mood", "mood_probability", "warmth", "warmth_probability"]
NAMES = ["text", *ANSWERS, "truncated", "unreadable"]


def test_a_task_has_two_columns() -> None:
    columns = columns_of(TASKS)
    assert [column.name for column in columns] == NAMES
    assert [column.kind for column in columns] == [STRING, STRING, FLOAT, FLOAT, FLOAT, BOOL, BOOL]
    assert [column.name for column in answer_columns(TASKS)] == NAMES[1:]


def test_json_nests_what_a_task_answers() -> None:
    assert as_json(PREDICTIONS[0], columns_of(TASKS)) == {
        "text": 'a "tea", ä',
        "mood": {"label": "good", "probability": 0.75},
        "warmth": {"label": 2.5, "probability": None},
        "truncated": False,
        "unreadable": False,
    }
    assert as_json(PREDICTIONS[2], columns_of(TASKS))["unreadable"] is True


def test_every_format_holds_the_same_columns_and_values() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = PredictionTable(columns_of(TASKS), PREDICTIONS)
    parquet = pq.read_table(pa.BufferReader(PART_FORMATS["parquet"](table)))
    assert parquet.column_names == NAMES
    rows = parquet.to_pylist()

    def predict(texts: list[str], pairs: list[str] | None) -> list[Prediction]:
        return PREDICTIONS

    texts = [prediction.text for prediction in PREDICTIONS]
    frame = add_predictions({"text": texts}, predict, TASKS, column="text", pair=None)
    assert list(frame) == NAMES
    assert [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)] == rows
    as_words = [{name: "" if row[name] is None else str(row[name]) for name in row} for row in rows]
    assert list(csv.DictReader(StringIO(CSV.encode(table).decode(), newline=""))) == as_words
    for line, row in zip(JSONL.encode(table).decode().splitlines(), rows, strict=True):
        content = json.loads(line)
        assert list(content) == ["text", *TASKS, "truncated", "unreadable"]
        for task in TASKS:
            values = {"label": row[task], "probability": row[f"{task}_probability"]}
            assert content[task] == values


@pytest.mark.parametrize("line_format", LINE_FORMATS.values(), ids=list(LINE_FORMATS))
def test_rows_written_one_by_one_are_the_whole_file(line_format: LineFormat) -> None:
    columns = columns_of(TASKS)
    whole = line_format.header(PredictionTable(columns, []))
    for prediction in PREDICTIONS:
        whole += line_format.rows(PredictionTable(columns, [prediction]))
    assert whole.encode() == line_format.encode(PredictionTable(columns, PREDICTIONS))
