"""One table of columns decides what every format holds."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

import pytest

from litotes.core.values import Answer, Prediction, Task
from litotes.prediction.answers import BOOL, FLOAT, STRING, answer_columns, as_json
from litotes.prediction.frames import FrameRequest, add_predictions
from litotes.prediction.tables import (
    CSV,
    FORMATS,
    JSONL,
    LINE_FORMATS,
    AnsweredRow,
    Layout,
    LineFormat,
)

TASKS = {"mood": Task("mood", ("bad", "good")), "warmth": Task("warmth", ())}


def answered(text: str, mood: str, share: float, warmth: float, **more: Any) -> Prediction:
    other = "good" if mood == "bad" else "bad"
    shares = {mood: share, other: 1 - share}
    probabilities = {label: shares[label] for label in TASKS["mood"].labels}
    answers = {"mood": Answer(mood, share, probabilities), "warmth": Answer(warmth, None)}
    return Prediction(text, answers, **{"truncated": False, **more})


PREDICTIONS = [
    answered('a "tea", ä', "good", 0.75, 2.5),
    answered("two\nlines", "bad", 0.5, -1.0, truncated=True),
    answered("🫨", "bad", 0.75, 0.0, unreadable=True),
    Prediction("", {}, False, problem="it is empty"),
]
ROWS = [AnsweredRow({"text": prediction.text}, prediction) for prediction in PREDICTIONS]
NAMES = ["text", "mood", "mood_probability", "warmth", "truncated", "unreadable", "problem"]


def test_a_task_has_two_columns_and_a_regression_one() -> None:
    assert Layout(("text",), TASKS).names == NAMES
    columns = answer_columns(TASKS)
    assert [column.name for column in columns] == NAMES[1:]
    assert [column.kind for column in columns] == [STRING, FLOAT, FLOAT, BOOL, BOOL, STRING]


def test_every_label_has_a_column_where_asked_for() -> None:
    columns = answer_columns(TASKS, all_probabilities=True, prefix="p.")
    assert [column.name for column in columns][:4] == [
        "p.mood",
        "p.mood_probability",
        "p.mood_probability_bad",
        "p.mood_probability_good",
    ]
    assert [column.value(PREDICTIONS[0]) for column in columns[2:4]] == [0.25, 0.75]
    assert [column.value(PREDICTIONS[3]) for column in columns[:4]] == [None] * 4


def test_json_nests_what_a_task_answers() -> None:
    assert as_json(PREDICTIONS[0], TASKS) == {
        "text": 'a "tea", ä',
        "mood": {
            "label": "good",
            "probability": 0.75,
            "probabilities": {"bad": 0.25, "good": 0.75},
        },
        "warmth": {"label": 2.5, "probability": None, "probabilities": {}},
        "truncated": False,
        "unreadable": False,
        "problem": None,
    }
    assert as_json(PREDICTIONS[2], TASKS)["unreadable"] is True
    assert as_json(PREDICTIONS[3], TASKS) == {
        "text": "",
        "mood": None,
        "warmth": None,
        "truncated": False,
        "unreadable": False,
        "problem": "it is empty",
    }


def test_every_format_holds_the_same_columns_and_values() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    layout = Layout(("text",), TASKS)
    parquet = pq.read_table(pa.BufferReader(FORMATS["parquet"](layout, ROWS)))
    assert parquet.column_names == NAMES
    rows = parquet.to_pylist()

    def predict(texts: object) -> list[Prediction]:
        return PREDICTIONS

    texts = [prediction.text for prediction in PREDICTIONS]
    frame = add_predictions({"text": texts}, predict, TASKS, FrameRequest())
    assert list(frame) == NAMES
    assert [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)] == rows
    as_words = [{name: "" if row[name] is None else str(row[name]) for name in row} for row in rows]
    written = CSV.encode(layout, ROWS).decode()
    assert list(csv.DictReader(StringIO(written, newline=""))) == as_words
    for line, row in zip(JSONL.encode(layout, ROWS).decode().splitlines(), rows, strict=True):
        content = json.loads(line)
        assert list(content) == ["text", *TASKS, "truncated", "unreadable", "problem"]
        for task in TASKS:
            label = None if content[task] is None else content[task]["label"]
            assert label == row[task]


@pytest.mark.parametrize("line_format", LINE_FORMATS.values(), ids=list(LINE_FORMATS))
def test_rows_written_one_by_one_are_the_whole_file(line_format: LineFormat) -> None:
    layout = Layout(("text",), TASKS)
    whole = line_format.header(layout)
    for row in ROWS:
        whole += line_format.rows(layout, [row])
    assert whole.encode() == line_format.encode(layout, ROWS)
