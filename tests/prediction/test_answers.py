"""Answers are columns: one table of columns decides what every format holds, and objects say the
same.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.model.calibration import Bound, Calibration, LabelSets, TaskAnswers, to_answers
from litotes.prediction.answers import BOOL, FLOAT, INT, STRING, Answers, as_json, make_columns
from litotes.prediction.frames import add_predictions
from litotes.prediction.tables import (
    AnsweredRows,
    Layout,
    TableRequest,
    arrow_table,
    header_line,
    row_lines,
)

MOOD = Task("mood", ("bad", "good"), coverage=0.9, has_exits=True)
MOODS = Task("moods", ("angry", "calm", "sad"), multi_label=True)
TASKS = {"mood": MOOD, "moods": MOODS, "warmth": Task("warmth", ())}
ANSWERS = Answers(
    ['a "tea", ä', "two\nlines", "", "=🫨"],
    [None, None, None, None],
    {2: "it is empty"},
    {
        "mood": TaskAnswers(
            MOOD,
            np.array([1, 0, 0]),
            np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]),
            np.array([[False, True], [True, True], [False, False]]),
        ),
        "moods": TaskAnswers(
            MOODS, np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1]], np.bool_), np.full((3, 3), 0.5)
        ),
        "warmth": TaskAnswers(TASKS["warmth"], np.array([2.5, -1.0, 0.0])),
    },
    truncated=np.array([False, True, False]),
    unreadable=np.array([False, False, True]),
    layers=np.array([0, 2, 1]),
)
EXPECTED: dict[str, tuple[str, list[Any]]] = {
    "mood": (STRING, ["good", "bad", None, "bad"]),
    "mood_probability": (FLOAT, [0.75, 0.5, None, 0.75]),
    "mood_probability_bad": (FLOAT, [0.25, 0.5, None, 0.75]),
    "mood_probability_good": (FLOAT, [0.75, 0.5, None, 0.25]),
    "mood_labels": (STRING, ["good", "bad|good", None, ""]),
    "mood_unsure": (
        STRING,
        [None, "several labels are possible: bad, good", None, "no label is likely enough"],
    ),
    "moods": (STRING, ["angry|calm", "none", None, "sad"]),
    **{f"moods_probability_{label}": (FLOAT, [0.5, 0.5, None, 0.5]) for label in MOODS.labels},
    "warmth": (FLOAT, [2.5, -1.0, None, 0.0]),
    "truncated": (BOOL, [False, True, False, False]),
    "unreadable": (BOOL, [False, False, False, True]),
    "problem": (STRING, [None, None, "it is empty", None]),
    "answered_at_layer": (INT, [0, 2, None, 1]),
}
REQUEST = TableRequest(Path("-"), all_probabilities=True, keep_formulas=True)
LAYOUT = Layout(REQUEST, ("text",), TASKS)
ROWS = AnsweredRows([{"text": text} for text in ANSWERS.texts], ANSWERS)


def answer(texts: object) -> list[Answers]:
    return [ANSWERS]


def test_every_column_holds_what_was_answered() -> None:
    columns = make_columns(TASKS, all_probabilities=True)
    assert {one.name: (one.kind, ANSWERS.cells(one)) for one in columns} == EXPECTED
    fewer = [one.name for one in make_columns(TASKS)]
    assert fewer == [name for name in EXPECTED if "probability_" not in name]
    plain = {"mood": replace(MOOD, coverage=None, has_exits=False)}
    assert [one.name for one in make_columns(plain, prefix="p.")] == [
        "p.mood",
        "p.mood_probability",
        "p.truncated",
        "p.unreadable",
        "p.problem",
    ]


def test_every_format_holds_the_same_cells() -> None:
    pa = pytest.importorskip("pyarrow")
    names = ["text", *EXPECTED]
    rows = [
        {"text": text, **{name: cells[place] for name, (_, cells) in EXPECTED.items()}}
        for place, text in enumerate(ANSWERS.texts)
    ]
    table = arrow_table(LAYOUT, ROWS)
    assert table.column_names == names
    assert table.to_pylist() == rows
    assert table.schema.field("answered_at_layer").type == pa.int64()
    frame = add_predictions({"text": list(ANSWERS.texts)}, TASKS, answer, all_probabilities=True)
    assert [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)] == rows
    pandas = pytest.importorskip("pandas").DataFrame({"text": list(ANSWERS.texts)})
    typed = add_predictions(pandas, TASKS, answer)
    assert (typed["answered_at_layer"].dtype, typed["warmth"].dtype) == ("Int64", np.float64)
    assert typed["answered_at_layer"].isna().tolist() == [False, False, True, False]
    written = header_line(LAYOUT, "csv") + row_lines(LAYOUT, "csv", ROWS)
    as_words = [{name: "" if row[name] is None else str(row[name]) for name in row} for row in rows]
    assert list(csv.DictReader(StringIO(written, newline=""))) == as_words
    lines = row_lines(LAYOUT, "jsonl", ROWS).splitlines()
    for line, row, prediction in zip(lines, rows, ANSWERS.predictions(), strict=True):
        content = json.loads(line)
        assert content == {"text": row["text"], **as_json(prediction, TASKS)}
        for task in ("mood", "warmth"):
            assert (content[task] or {}).get("label") == row[task]


def test_rows_without_an_answer_are_left_out_where_asked_for() -> None:
    pytest.importorskip("pyarrow")
    layout = replace(LAYOUT, request=replace(REQUEST, bad_rows="skip"))
    texts = [text for place, text in enumerate(ANSWERS.texts) if place != 2]
    assert arrow_table(layout, ROWS)["text"].to_pylist() == texts
    lines = row_lines(layout, "jsonl", ROWS).splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts
    assert len(list(csv.reader(StringIO(row_lines(layout, "csv", ROWS), newline="")))) == 3


def rows_keeping(kept: list[object]) -> tuple[Layout, AnsweredRows]:
    """Rows of one column that is copied, with a number as their answer."""
    n, warmth = len(kept), TASKS["warmth"]
    no, own = np.zeros(n, np.bool_), {"warmth": TaskAnswers(warmth, np.full(n, 1.5))}
    answers = Answers(["tea"] * n, [None] * n, {}, own, no, no)
    layout = Layout(TableRequest(Path("-")), ("=key",), {"warmth": warmth})
    return layout, AnsweredRows([{"=key": one} for one in kept], answers)


def test_kept_cells_of_any_type_are_written_and_no_spreadsheet_computes_them() -> None:
    pa = pytest.importorskip("pyarrow")
    kept = ["ä,b", 5, True, {"a": [1]}, None, "=1+1", "-5", "+x"]
    layout, rows = rows_keeping(kept)
    found = [json.loads(line)["=key"] for line in row_lines(layout, "jsonl", rows).splitlines()]
    assert found == kept
    written = header_line(layout, "csv") + row_lines(layout, "csv", rows)
    as_text = ["ä,b", "5", "true", '{"a": [1]}', "", "'=1+1", "-5", "'+x"]
    assert [row[0] for row in csv.reader(StringIO(written))] == ["'=key", *as_text]
    free = replace(layout, request=replace(layout.request, keep_formulas=True))
    written = header_line(free, "csv") + row_lines(free, "csv", rows)
    assert [row[0] for row in csv.reader(StringIO(written))][::6] == ["=key", "=1+1"]
    for types, expected in (({}, ["5", None, "7"]), ({"=key": "int64"}, [5, None, 7])):
        layout, rows = rows_keeping([5, None, 7])
        table = arrow_table(replace(layout, types=types), rows)
        assert table["=key"].to_pylist() == expected
        assert table.schema.field("warmth").type == pa.float64()
    with pytest.raises(UserError, match="the column 'new', which the rows before have not"):
        row_lines(layout, "csv", replace(rows, kept=[{"new": 1}] * 3))


def test_json_nests_what_a_task_answers() -> None:
    first, _, bad, _ = (as_json(one, TASKS) for one in ANSWERS.predictions())
    assert first == {
        "text": 'a "tea", ä',
        "mood": {
            "label": "good",
            "probability": 0.75,
            "probabilities": {"bad": 0.25, "good": 0.75},
            "labels": ["good"],
            "unsure": None,
        },
        "moods": {
            "label": ["angry", "calm"],
            "probability": None,
            "probabilities": dict.fromkeys(MOODS.labels, 0.5),
        },
        "warmth": {"label": 2.5, "probability": None, "probabilities": {}},
        "truncated": False,
        "unreadable": False,
        "problem": None,
        "answered_at_layer": 0,
    }
    nothing = {"truncated": False, "unreadable": False, "problem": "it is empty"}
    assert bad == {"text": "", **dict.fromkeys(TASKS), **nothing}


def test_a_set_holds_the_labels_above_the_bound_of_the_variety() -> None:
    task = Task("mood", ("a", "b", "c"))
    logits = np.log([[0.6, 0.3, 0.1], [0.5, 0.49, 0.01]])
    sets = LabelSets(0.9, Bound(0.25, 50), {"en-AU": Bound(0.55, 40)})
    answers = to_answers(logits, task, Calibration(), least=sets.bound(None).least)
    assert answers.sets() == [("a", "b"), ("a", "b")]
    own = to_answers(logits, task, Calibration(), least=sets.bound("en-AU").least)
    assert own.sets() == [("a",), ()]
    assert [one.unsure for one in own.objects()] == [None, "no label is likely enough"]
