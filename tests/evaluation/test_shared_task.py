"""The shared task's score: that of the official procedure on a thousand files, and a sentence for
what that one gets wrong.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.evaluation.scores import confusion, macro_f1
from litotes.evaluation.shared_task import COLUMNS, score_files, shared_task_score

Rows = list[list[str]]
Write = Callable[..., Path]

GOLD: Rows = [
    ["google", "en-AU", 'Top "spot", mate\nwould go again', "1", "0"],
    ["reddit", "en-AU", "Great, another delay", "0", "1"],
    ["reddit", "en-UK", "Lovely weather, as ever", "0", "1"],
    ["google", "en-UK", "A proper brew", "1", "0"],
    ["reddit", "en-UK", "Not bad", "1", "0"],
]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_csv(
        name: str, rows: Sequence[Sequence[str]], header: Sequence[str] = COLUMNS
    ) -> Path:
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([header, *rows])
        return tmp_path / name

    return write_csv


@cache  # small files repeat themselves
def official_f1(gold: tuple[int, ...], answers: tuple[int, ...]) -> float:
    return float(f1_score(gold, answers, average="macro"))


def official(predictions: Path, gold: Path) -> list[str]:
    """The published procedure in a few lines: filter both files by variety, pair by position,
    scikit-learn.
    """
    run, truth = (
        list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
        for file in (predictions, gold)
    )
    scores: dict[str, list[float]] = {"sentiment": [], "sarcasm": []}
    lines = []
    for task, found in scores.items():
        for variety in ("en-AU", "en-UK"):
            sides = [
                tuple(int(row[task]) for row in side if row["variety"] == variety)
                for side in (truth, run)
            ]
            found.append(official_f1(*sides))
            lines.append(f"f1-{task}-{variety}: {found[-1]:.4f}")
    return [*lines, f"score: {(min(scores['sentiment']) + min(scores['sarcasm'])) / 2:.4f}"]


def random_rows(draw: random.Random) -> tuple[Rows, Rows]:
    """A small file and its answers, some of them by a model that has collapsed, some with a variety
    that is not scored.
    """
    varieties = [
        *(draw.choice(("en-AU", "en-UK", "en-IN")) for _ in range(draw.randint(0, 12))),
        "en-AU",
        "en-UK",
    ]
    draw.shuffle(varieties)
    shares = [draw.choice((0, 0.1, 0.5, 0.9, 1)) for _ in range(4)]
    labels = [[str(int(draw.random() < share)) for share in shares] for _ in varieties]
    places = [
        [draw.choice(("google", "reddit")), variety, f"text {n}"]
        for n, variety in enumerate(varieties)
    ]
    gold, answers = (
        [[*place, *found[start : start + 2]] for place, found in zip(places, labels, strict=True)]
        for start in (0, 2)
    )
    return gold, answers


@pytest.mark.slow
def test_a_thousand_random_files_score_as_officially(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    # of intervals, which the official lines do not have
    monkeypatch.setattr("litotes.evaluation.shared_task._resample", lambda *_: np.zeros((1, 2)))
    monkeypatch.setattr("litotes.evaluation.scores.f1_interval", lambda _, *, seed: (0.0, 1.0))
    draw = random.Random(0)
    for _ in range(1000):
        gold_rows, answer_rows = random_rows(draw)
        gold, answers = write("gold.csv", gold_rows), write("answers.csv", answer_rows)
        assert score_files(answers, gold).lines() == official(answers, gold)


def test_the_score_is_the_mean_of_the_worst_varieties() -> None:
    gold = {"sentiment": [0, 1, 0, 1], "sarcasm": [0, 1, 0, 1]}
    predicted = {"sentiment": [0, 1, 0, 0], "sarcasm": [1, 0, 0, 1]}
    found = shared_task_score(gold, predicted, ["en-AU", "en-AU", "en-UK", "en-UK"])
    assert {name: cell.macro_f1 for name, cell in found.cells.items()} == {
        "sentiment-en-AU": 1.0,
        "sentiment-en-UK": pytest.approx(1 / 3),
        "sarcasm-en-AU": 0.0,
        "sarcasm-en-UK": 1.0,
    }
    assert found.score == pytest.approx(1 / 6)
    assert found.majority == pytest.approx(1 / 3)


def test_command_prints_the_official_lines_and_json(
    write: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gold, answers = (
        write("gold.csv", GOLD),
        write("answers.csv", [*GOLD[:4], [*GOLD[4][:3], "0", "1"]]),
    )
    zipped = tmp_path / "gold.csv.gz"
    zipped.write_bytes(gzip.compress(gold.read_bytes()))
    assert main(["score", str(answers), str(zipped)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == official(answers, gold)
    assert "95 % interval" in captured.err
    assert main(["score", str(answers), str(gold), "--json", "--out", str(tmp_path / "out")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads((tmp_path / "out" / "score.json").read_text())
    assert content["f1-sentiment-en-UK"] == pytest.approx(2 / 3)
    assert content["interval"][0] <= content["score"] <= content["interval"][1]
    assert content["cells"]["sarcasm-en-AU"]["n"] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows: [rows[1], rows[0], *rows[2:]],
            r"answers.csv, line 2: this is the row of .*gold.csv, line 4, out of order",
        ),
        (
            lambda rows: rows[:2] + rows[3:],
            r"line 5: before this row, that of .*gold.csv, line 5 is missing",
        ),
        (
            lambda rows: rows[:-1],
            r"ends at line 6: the row of .*gold.csv, line 7 and all after it are missing",
        ),
        (lambda rows: [*rows, rows[0]], r"line 8: this row comes after the last one"),
        (
            lambda rows: [rows[0], rows[0], *rows[1:]],
            r"line 4: .*gold.csv has no such row, or not as often",
        ),
        (
            lambda rows: [*rows[:3], ["google", "en-UK", "A proper tea", "1", "0"], rows[4]],
            r"line 6: other text than .*, line 6",
        ),
        (lambda rows: [rows[0], ["google", *rows[1][1:]], *rows[2:]], r"line 4: other source than"),
        (
            lambda rows: [rows[0], ["google", "en-UK", *rows[1][2:]], *rows[2:]],
            r"line 4: other source and variety than",
        ),
        (
            lambda rows: [*rows[:4], [*rows[4][:3], "", "0"]],
            r"line 7, column 'sentiment' is empty: every row needs a label",
        ),
        (lambda rows: [*rows[:4], [*rows[4][:4], "NaN"]], r"line 7, column 'sarcasm' is empty"),
        (
            lambda rows: [*rows[:4], [*rows[4][:4], "0.5"]],
            r"line 7, column 'sarcasm': the label '0.5' is neither 0 nor 1",
        ),
        (
            lambda rows: [[*rows[0][:3], "positive", "0"], *rows[1:]],
            r"line 2, column 'sentiment': the label 'positive'",
        ),
        (
            lambda rows: [[*rows[0][:3], "2", "0"], *rows[1:]],
            r"line 2, column 'sentiment': the label '2'",
        ),
        (
            lambda rows: [rows[0], rows[1][:4], *rows[2:]],
            r"line 4 has 4 fields where there should be 5",
        ),
        (lambda rows: [], "has no rows"),
    ],
)
def test_what_would_be_scored_wrongly_is_one_sentence(
    change: Callable[[Rows], Rows], message: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, gold = write("answers.csv", change(GOLD)), write("gold.csv", GOLD)
    with pytest.raises(UserError, match=message):
        score_files(answers, gold)
    assert main(["score", str(answers), str(gold)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (("source", "variety", "text", "sentiment", "irony"), "no column 'sarcasm'"),
        (("source", "variety", "text", "sentiment", " sarcasm"), "no column 'sarcasm'"),
        (("source", "variety", "text", "sentiment", "sentiment"), "no column 'sarcasm'"),
        (("id", "sentiment"), "no column 'source'"),
    ],
)
def test_columns_are_taken_as_they_stand(
    header: tuple[str, ...], message: str, write: Write
) -> None:
    with pytest.raises(UserError, match=message):
        score_files(write("answers.csv", GOLD, header), write("gold.csv", GOLD))


def test_a_column_given_twice_is_refused(write: Write) -> None:
    rows = [[*row, "0"] for row in GOLD]
    with pytest.raises(UserError, match="'sarcasm' is there 2 times"):
        score_files(write("answers.csv", rows, (*COLUMNS, "sarcasm")), write("gold.csv", GOLD))


def test_other_files_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no CSV file"):
        score_files(tmp_path / "answer.zip", write("gold.csv", GOLD))


def test_floats_that_are_labels_and_other_columns_are_read(write: Write) -> None:
    gold = write("gold.csv", GOLD)
    turned = [["7", *(f"{float(label)}" for label in row[3:]), *row[:3]] for row in GOLD]
    answers = write(
        "answers.csv", turned, ("id", "sentiment", "sarcasm", "source", "variety", "text")
    )
    assert score_files(answers, gold).score == 1.0


def test_both_varieties_are_needed(write: Write) -> None:
    with pytest.raises(UserError, match="is of en-UK"):
        score_files(write("answers.csv", GOLD[:2]), write("gold.csv", GOLD[:2]))


@pytest.mark.parametrize("strange", [2, float("nan")])
def test_arrays_are_checked(strange: float) -> None:
    gold = {"sentiment": [0, 1], "sarcasm": [0, 1]}
    with pytest.raises(UserError, match="neither 0 nor 1"):
        shared_task_score(gold, gold | {"sarcasm": [0, strange]}, ["en-AU", "en-UK"])


def test_rows_of_other_varieties_are_said_not_to_count() -> None:
    answers = {"sentiment": [0, 1, 0], "sarcasm": [0, 1, 0]}
    wrong = {"sentiment": [0, 1, 1], "sarcasm": [0, 1, 1]}
    found = shared_task_score(answers, wrong, ["en-AU", "en-UK", "en-IN"])
    assert found.score == 1.0
    assert any(
        note.startswith("Rows of other varieties") and note.endswith(": 1.")
        for note in found.notes()
    )


def test_a_collapsed_answer_is_said() -> None:
    gold = {"sentiment": [0, 1] * 4, "sarcasm": [0, 1] * 4}
    found = shared_task_score(gold, gold | {"sarcasm": [0] * 8}, ["en-AU"] * 4 + ["en-UK"] * 4)
    assert [
        note for note in found.notes() if "COLLAPSED: sarcasm-en-UK is answered 'literal'" in note
    ]


def test_the_interval_is_that_of_drawing_texts_within_varieties() -> None:
    draw = np.random.default_rng(0)
    varieties = np.array(["en-AU"] * 150 + ["en-UK"] * 90)
    gold = {task: draw.integers(0, 2, 240) for task in ("sentiment", "sarcasm")}
    hard = draw.random(240) < 0.3  # the same texts are hard for both tasks
    predicted = {task: np.where(hard, 1 - labels, labels) for task, labels in gold.items()}
    found = shared_task_score(gold, predicted, varieties.tolist(), seed=1)
    slow = []

    def f1(task: str, part: np.ndarray[Any, Any]) -> float:
        return float(macro_f1(confusion(gold[task][part], predicted[task][part], 2)))

    for _ in range(600):
        chosen = np.concatenate(
            [
                draw.choice(np.flatnonzero(varieties == variety), n)
                for variety, n in (("en-AU", 150), ("en-UK", 90))
            ]
        )
        cells = [[f1(task, part) for part in (chosen[:150], chosen[150:])] for task in gold]
        slow.append(np.mean([min(cell) for cell in cells]))
    assert found.interval == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=0.015)
    again = shared_task_score(gold, predicted, varieties.tolist(), seed=1)
    assert again == found
    assert again.interval != shared_task_score(gold, predicted, varieties.tolist(), seed=2).interval
