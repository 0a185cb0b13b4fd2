"""The shared task: the score of the official procedure on many files, a sentence for what that one
gets wrong, and an entry that holds the rows of the input byte for byte.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zipfile import ZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.numbers import confusion, macro_f1
from litotes.core.values import Task
from litotes.data.corpus import SARCASM, SENTIMENT, SENTIMENT_3
from litotes.evaluation import shared_task as module
from litotes.evaluation.shared_task import (
    COLUMNS,
    Submission,
    answer,
    read_wide,
    score_files,
    shared_task_score,
    write_submission,
)
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import Recipe
from litotes.training.run import train

Rows = list[list[str]]
Write = Callable[..., Path]
Captured = pytest.CaptureFixture[str]

GOLD: Rows = [
    ["google", "en-AU", 'Top "spot", mate\nwould go again', "1", "0"],
    ["reddit", "en-AU", "Great, another delay", "0", "1"],
    ["reddit", "en-UK", "Lovely weather, as ever", "0", "1"],
    ["google", "en-UK", "A proper brew", "1", "0"],
    ["reddit", "en-UK", "Not bad", "1", "0"],
]
ROW = ("reddit", "en-AU", "fine", "0", "1")
TEXTS = [
    "Top spot",
    'She said "no",\nthen\r\n"yes", twice',
    " spaces around, and a tab\t",
    "naïve café 🫖\rold Mac",
    "=1+1",
    "tea " * 200,
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


def official(predictions: Path, gold: Path) -> list[str]:
    """The published procedure in a few lines: filter both files by variety, pair by position,
    scikit-learn.
    """
    files = (file.read_bytes().decode() for file in (gold, predictions))
    sides = [list(csv.DictReader(io.StringIO(file, newline=""))) for file in files]
    lines, worst = [], []
    for task in ("sentiment", "sarcasm"):
        found = {}
        for variety in ("en-AU", "en-UK"):
            own = [[int(row[task]) for row in side if row["variety"] == variety] for side in sides]
            found[variety] = float(f1_score(*own, average="macro"))
            lines.append(f"f1-{task}-{variety}: {found[variety]:.4f}")
        worst.append(min(found.values()))
    return [*lines, f"score: {sum(worst) / 2:.4f}"]


@pytest.mark.parametrize("seed", range(12))
def test_random_files_score_as_officially(write: Write, seed: int) -> None:
    """Some of a model that has collapsed, some with a variety that is not scored."""
    draw = np.random.default_rng(seed)
    varieties = ["en-AU", "en-UK", *draw.choice(["en-AU", "en-UK", "en-IN"], 10).tolist()]
    shares = draw.choice([0, 0.1, 0.5, 0.9, 1], 4)
    sides: tuple[Rows, Rows] = ([], [])
    for number, variety in enumerate(varieties):
        labels = (draw.random(4) < shares).astype(int).astype(str).tolist()
        for side, own in zip(sides, (labels[:2], labels[2:]), strict=True):
            side.append(["google", variety, f"text {number}", *own])
    gold, answers = write("gold.csv", sides[0]), write("answers.csv", sides[1])
    assert score_files(answers, gold).lines() == official(answers, gold)


def test_the_score_is_the_mean_of_the_worst_varieties() -> None:
    gold = {"sentiment": [0, 1, 0, 1, 0], "sarcasm": [0, 1, 0, 1, 0]}
    predicted = {"sentiment": [0, 1, 0, 0, 1], "sarcasm": [1, 0, 1, 1, 1]}
    varieties = ["en-AU", "en-AU", "en-UK", "en-UK", "en-IN"]
    found = shared_task_score(gold, predicted, varieties)
    places = ("sentiment-en-AU", "sentiment-en-UK", "sarcasm-en-AU", "sarcasm-en-UK")
    expected = dict(zip(places, (1.0, 1 / 3, 0.0, 1 / 3), strict=True))
    assert {name: cell.macro_f1 for name, cell in found.cells.items()} == pytest.approx(expected)
    assert (found.score, found.majority) == pytest.approx((1 / 6, 1 / 3))
    content = found.as_json()
    assert (content["f1-sarcasm-en-UK"], content["cells"]["sarcasm-en-AU"]["n"]) == (1 / 3, 2)
    interval, elsewhere, *collapsed = found.notes()
    assert "majority line: 0.3333" in interval
    assert elsewhere.endswith(": 1.")
    assert [note.split()[1] for note in collapsed] == ["sentiment-en-UK", "sarcasm-en-UK"]
    with pytest.raises(UserError, match="is of en-UK"):
        shared_task_score(gold, predicted, ["en-AU"] * 5)
    for strange in (2, float("nan")):
        with pytest.raises(UserError, match="neither 0 nor 1"):
            shared_task_score(gold, predicted | {"sarcasm": [0, 1, 0, 1, strange]}, varieties)


def test_the_interval_is_that_of_drawing_texts_within_varieties() -> None:
    draw = np.random.default_rng(0)
    varieties = np.repeat(["en-AU", "en-UK"], [150, 90])
    gold = draw.integers(0, 2, (2, 240))
    hard = draw.random(240) < 0.3  # the same texts are hard for both tasks
    predicted = np.where(hard, 1 - gold, gold)
    sides = [dict(zip(("sentiment", "sarcasm"), side, strict=True)) for side in (gold, predicted)]
    found = shared_task_score(*sides, varieties.tolist(), seed=1)
    slow = []
    for _ in range(600):
        parts = [draw.choice(150, 150), 150 + draw.choice(90, 90)]
        f1 = [
            [macro_f1(confusion(gold[t, own], predicted[t, own], 2)) for own in parts]
            for t in (0, 1)
        ]
        slow.append(np.min(f1, axis=1).mean())
    assert found.interval == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=0.015)
    assert shared_task_score(*sides, varieties.tolist(), seed=1) == found
    assert shared_task_score(*sides, varieties.tolist(), seed=2).interval != found.interval


def test_command_prints_the_official_lines_and_json(
    write: Write, capsys: Captured, tmp_path: Path
) -> None:
    gold = write("gold.csv", GOLD)
    answers = write("answers.csv", [*GOLD[:4], [*GOLD[4][:3], "0", "1"]])
    zipped = tmp_path / "gold.csv.gz"
    zipped.write_bytes(gzip.compress(gold.read_bytes()))
    assert main(["score", str(answers), str(zipped)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == official(answers, gold)
    assert "95 % interval" in captured.err
    assert main(["score", str(answers), str(gold), "--json", "--out", str(tmp_path / "out")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads((tmp_path / "out" / "score.json").read_text())
    assert content["interval"][0] <= content["score"] <= content["interval"][1]
    assert main(["score", str(write("one.csv", GOLD[:1])), str(gold)]) == 2
    captured = capsys.readouterr()
    assert (captured.err.count("\n"), captured.out) == (1, "")


def changed(place: int, column: int, value: str) -> Rows:
    rows = [list(row) for row in GOLD]
    rows[place][column] = value
    return rows


CHANGES: list[tuple[Rows, str]] = [
    (
        [GOLD[1], GOLD[0], *GOLD[2:]],
        r"line 2: other .*gold.csv, line 2\. This is .*gold.csv, line 4",
    ),
    (GOLD[:2] + GOLD[3:], r"line 5: other source and text than in .*gold.csv, line 5"),
    (GOLD[:-1], r"ends at line 6: .*gold.csv, line 7 and all after it"),
    ([*GOLD, GOLD[0]], r"line 8: .* after the last one"),
    (changed(4, 2, "tea"), r"line 7: other text .* line 7"),
    (changed(4, 3, ""), r"line 7, column 'sentiment' is empty"),
    (changed(4, 4, "0.5"), r"line 7, column 'sarcasm': .*'0.5'"),
    (changed(0, 3, "2"), r"line 2, column 'sentiment': .*'2'"),
    ([GOLD[0], GOLD[1][:4], *GOLD[2:]], r"line 4 has 4 fields"),
    ([], "has no rows"),
]


@pytest.mark.parametrize(("rows", "message"), CHANGES)
def test_what_would_be_scored_wrongly_is_told(rows: Rows, message: str, write: Write) -> None:
    with pytest.raises(UserError, match=message):
        score_files(write("answers.csv", rows), write("gold.csv", GOLD))


def test_columns_are_taken_as_they_stand(write: Write) -> None:
    gold = write("gold.csv", GOLD)
    blank = write("answers.csv", GOLD, (*COLUMNS[:4], " sarcasm"))
    with pytest.raises(UserError, match="no column 'sarcasm'"):
        score_files(blank, gold)
    twice = write("answers.csv", [[*row, "0"] for row in GOLD], (*COLUMNS, "sarcasm"))
    with pytest.raises(UserError, match=r"'sarcasm' .*(2 times|twice)"):
        score_files(twice, gold)
    with pytest.raises(UserError, match="no CSV file"):
        score_files(gold.with_name("answer.zip"), gold)
    turned = [["7", *(f"{float(label)}" for label in row[3:]), *row[:3]] for row in GOLD]
    turned_header = ("id", "sentiment", "sarcasm", "source", "variety", "text")
    assert score_files(write("answers.csv", turned, turned_header), gold).score == 1.0


# An entry


@pytest.fixture
def data(write: Write) -> Path:
    rows = [["reddit", ("en-AU", "en-UK")[n % 2], text, ""] for n, text in enumerate(TEXTS)]
    return write("test.csv", rows, ["source", "variety", "text", "sentiment"])


def asked(*tasks: Task, prefix: str = "none", seen: list[str] | None = None) -> Predictor:
    """Answers its tasks with the second label where a text is long; the first texts are cut, blank
    ones unreadable.
    """

    def predict(texts: Sequence[str], **_: object) -> list[Any]:
        (seen if seen is not None else []).extend(texts)
        found = []
        for text in texts:
            labels = {
                task.name: SimpleNamespace(label=task.labels[len(text) > 20]) for task in tasks
            }
            is_blank = not text.strip("\u200b")
            found.append(
                SimpleNamespace(answers=labels, truncated=len(text) > 99, unreadable=is_blank)
            )
        return found

    facts = {"recipe": {"data": {"source": f"besstie:train.csv?prefix={prefix}"}}}
    made = {
        "tasks": {task.name: task for task in tasks},
        "runtimes": [SimpleNamespace(facts=facts)],
    }
    return cast(Predictor, SimpleNamespace(**made, predict=predict))


def test_an_entry_has_the_rows_of_the_input(data: Path, write: Write) -> None:
    seen: list[str] = []
    both = answer(data, [asked(SENTIMENT, SARCASM, prefix="variety", seen=seen)])
    assert seen[0] == f"reddit australian: {TEXTS[0]}"  # as it was trained
    assert [row[2] for row in both.rows] == TEXTS
    labels = [str(int(len(text) > 20)) for text in seen]
    assert [row[3:] for row in both.rows] == [(label, label) for label in labels]
    assert both.count("sentiment", 1) == labels.count("1")
    assert both.notes == (
        "1 of 6 texts are longer than the model reads; their ends were not seen.",
    )
    # a model for each task, each with its own prefix
    each = answer(data, [asked(SARCASM), asked(SENTIMENT, prefix="variety")])
    assert [row[3] for row in each.rows] == labels
    assert [row[4] for row in each.rows] == [str(int(len(text) > 20)) for text in TEXTS]
    rows = [["Reddit", "en-AU", "tea"], ["Reddit", "en-UK", "\u200b"], ["Reddit", "en-IN", "tea"]]
    file = write("few.csv", rows, ["source", "variety", "text"])
    strange, unreadable = answer(file, [asked(SENTIMENT, SARCASM)]).notes
    assert strange.startswith("Rows of en-IN,")
    assert strange.endswith(": 1.")
    assert unreadable.startswith("1 of 3 texts are unreadable")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([[SENTIMENT]], "No model answers sarcasm"),
        ([[SENTIMENT, SARCASM], [SARCASM]], "2 models answer sarcasm"),
        ([[SENTIMENT_3, SARCASM]], "the shared task takes negative and positive"),
        ([[SENTIMENT, SARCASM], [Task("mood", ("a", "b"))]], "Model 2 answers mood"),
    ],
)
def test_tasks_and_models_must_fit(tasks: list[list[Task]], message: str, data: Path) -> None:
    with pytest.raises(UserError, match=message):
        answer(data, [asked(*own) for own in tasks])


WRITABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(st.lists(WRITABLE, min_size=1, max_size=5))
def test_any_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    made = Submission(tuple((*ROW[:2], text, *ROW[3:]) for text in texts), ())
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_bytes(made.as_csv())
    assert [row.values["text"] for row in read_wide(file, needs=COLUMNS)] == texts
    rows = list(csv.reader(io.StringIO(made.as_csv().decode(), newline="")))
    assert [row[2] for row in rows[1:]] == texts


def test_a_damaged_archive_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Submission((ROW,), ())
    write_submission(made, tmp_path / "answer.zip")
    with ZipFile(tmp_path / "answer.zip") as archive:
        assert archive.namelist() == ["answer.csv"]
        assert archive.read("answer.csv") == (tmp_path / "answer.csv").read_bytes()
        assert archive.infolist()[0].date_time[0] == 1980  # the same bytes whenever it is written
    monkeypatch.setattr(module, "write_bytes", lambda file, content: file.write_bytes(content[:-3]))
    with pytest.raises(UserError, match="does not come back"):
        write_submission(made, tmp_path / "answer.zip")


@pytest.mark.slow
def test_the_command_writes_an_entry_or_nothing(
    data: Path, tiny_folder: Path, tmp_path: Path, capsys: Captured
) -> None:
    recipe = Recipe().changed(
        data__where={"variety": "en-AU", "source": "review"},
        model__encoder=str(tiny_folder),
        training__epochs=1,
        training__batch_texts=64,
    )
    train(recipe, tmp_path / "model")

    def submit(file: Path, out: Path) -> int:
        options = ["--model", str(tmp_path / "model"), "--out", str(out), "--json"]
        return main(["score", "--submit", str(file), *options])

    assert submit(data, tmp_path / "entry" / "mine.zip") == 0
    content = json.loads(capsys.readouterr().out)
    assert sum(content["answers"]["sarcasm"].values()) == content["n"] == 6
    _, *rows = csv.reader(
        io.StringIO((tmp_path / "entry" / "answer.csv").read_bytes().decode(), newline="")
    )
    expected = Predictor.load(tmp_path / "model").predict(TEXTS)
    words = [SENTIMENT.labels[int(row[3])] for row in rows]
    assert words == [one.answers["sentiment"].label for one in expected]
    bad = tmp_path / "bad" / "test.csv"
    bad.parent.mkdir()
    for text, out, message in (
        ("source,variety,text\nreddit,en-AU,fine\nreddit,en-UK, \n", "a.zip", "line 3, column 't"),
        ("source,variety,text\nreddit,en-AU,fine\n", "answer.csv", "name the archive"),
    ):
        bad.write_text(text)
        assert submit(bad, bad.parent / out) == 2
        assert message in capsys.readouterr().err
        assert [path.name for path in bad.parent.iterdir()] == ["test.csv"]
    own = data.rename(tmp_path / "answer.csv")
    before = own.read_bytes()
    assert submit(own, tmp_path / "answer.zip") == 2  # the input is never overwritten
    assert "would replace" in capsys.readouterr().err
    assert own.read_bytes() == before
