"""The shared task: the score of the official procedure on many files, a sentence for what that one
gets wrong, and an entry that holds the rows of the input byte for byte.
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


@cache  # small files repeat themselves
def official_f1(gold: tuple[int, ...], answers: tuple[int, ...]) -> float:
    return float(f1_score(gold, answers, average="macro"))


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
            own = [
                tuple(int(row[task]) for row in side if row["variety"] == variety) for side in sides
            ]
            found[variety] = official_f1(*own)
            lines.append(f"f1-{task}-{variety}: {found[variety]:.4f}")
        worst.append(min(found.values()))
    return [*lines, f"score: {sum(worst) / 2:.4f}"]


@pytest.mark.slow
def test_random_files_score_as_officially(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of a model that has collapsed, some with a variety that is not scored."""
    # intervals, which the official lines do not have
    monkeypatch.setattr("litotes.evaluation.shared_task._resample", lambda *_: np.zeros((1, 2)))
    monkeypatch.setattr("litotes.evaluation.scores.f1_interval", lambda _, *, seed: (0.0, 1.0))
    draw = random.Random(0)
    for _ in range(1000):
        others = [draw.choice(("en-AU", "en-UK", "en-IN")) for _ in range(draw.randint(0, 12))]
        varieties = draw.sample(both := [*others, "en-AU", "en-UK"], len(both))
        shares = [draw.choice((0, 0.1, 0.5, 0.9, 1)) for _ in range(4)]
        sides: tuple[Rows, Rows] = ([], [])
        for number, variety in enumerate(varieties):
            labels = [str(int(draw.random() < share)) for share in shares]
            place = [draw.choice(("google", "reddit")), variety, f"text {number}"]
            sides[0].append([*place, *labels[:2]])
            sides[1].append([*place, *labels[2:]])
        gold, answers = write("gold.csv", sides[0]), write("answers.csv", sides[1])
        assert score_files(answers, gold).lines() == official(answers, gold)


def test_the_score_is_the_mean_of_the_worst_varieties() -> None:
    gold = {"sentiment": [0, 1, 0, 1, 0], "sarcasm": [0, 1, 0, 1, 0]}
    predicted = {"sentiment": [0, 1, 0, 0, 1], "sarcasm": [1, 0, 1, 1, 1]}
    varieties = ["en-AU", "en-AU", "en-UK", "en-UK", "en-IN"]
    found = shared_task_score(gold, predicted, varieties)
    assert {name: cell.macro_f1 for name, cell in found.cells.items()} == {
        "sentiment-en-AU": 1.0,
        "sentiment-en-UK": pytest.approx(1 / 3),
        "sarcasm-en-AU": 0.0,
        "sarcasm-en-UK": pytest.approx(1 / 3),
    }
    assert found.score == pytest.approx(1 / 6)
    assert found.majority == pytest.approx(1 / 3)
    interval, elsewhere, *collapsed = found.notes()
    assert "majority line: 0.3333" in interval
    assert elsewhere.endswith(": 1.")
    assert [note.split()[1] for note in collapsed] == ["sentiment-en-UK", "sarcasm-en-UK"]
    with pytest.raises(UserError, match="is of en-UK"):
        shared_task_score(gold, predicted, ["en-AU"] * 5)
    for strange in (2, float("nan")):
        with pytest.raises(UserError, match="neither 0 nor 1"):
            shared_task_score(gold, predicted | {"sarcasm": [0, 1, 0, 1, strange]}, varieties)


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
    assert content["f1-sentiment-en-UK"] == pytest.approx(2 / 3)
    assert content["interval"][0] <= content["score"] <= content["interval"][1]
    assert content["cells"]["sarcasm-en-AU"]["n"] == 2


CHANGES: list[tuple[Callable[[Rows], Sequence[Sequence[str]]], str]] = [
    (lambda rows: [rows[1], rows[0], *rows[2:]], r"line 2: .*gold.csv, line 4, out of order"),
    (lambda rows: rows[:2] + rows[3:], r"line 5: .*gold.csv, line 5 is missing"),
    (lambda rows: rows[:-1], r"ends at line 6: .*gold.csv, line 7 and all after it"),
    (lambda rows: [*rows, rows[0]], r"line 8: .* after the last one"),
    (lambda rows: [rows[0], *rows], r"line 4: .*gold.csv has no such row, or not as often"),
    (lambda rows: [*rows[:4], [*rows[4][:2], "tea", "1", "0"]], r"line 7: other text .* line 7"),
    (lambda rows: [rows[0], ["google", *rows[1][1:]], *rows[2:]], r"line 4: other source than"),
    (lambda rows: [["x", "en-UK", *rows[0][2:]], *rows[1:]], r"line 2: other source and variety"),
    (lambda rows: [*rows[:4], [*rows[4][:3], "", "0"]], r"line 7, column 'sentiment' is empty"),
    (lambda rows: [*rows[:4], [*rows[4][:4], "NaN"]], r"line 7, column 'sarcasm' is empty"),
    (lambda rows: [*rows[:4], [*rows[4][:4], "0.5"]], r"line 7, column 'sarcasm': .*'0.5'"),
    (lambda rows: [[*rows[0][:3], "2", "0"], *rows[1:]], r"line 2, column 'sentiment': .*'2'"),
    (lambda rows: [rows[0], rows[1][:4], *rows[2:]], r"line 4 has 4 fields"),
    (lambda rows: [], "has no rows"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_what_would_be_scored_wrongly_is_one_sentence(
    change: Callable[[Rows], Rows], message: str, write: Write, capsys: Captured
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
        (("source", "variety", "text", "sentiment", " sarcasm"), "no column 'sarcasm'"),
        (("source", "variety", "text", "sentiment", "sentiment"), "no column 'sarcasm'"),
        ((*COLUMNS, "sarcasm"), "'sarcasm' is there 2 times"),
    ],
)
def test_columns_are_taken_as_they_stand(
    header: tuple[str, ...], message: str, write: Write
) -> None:
    rows = [[*row, "0"][: len(header)] for row in GOLD]
    gold = write("gold.csv", GOLD)
    with pytest.raises(UserError, match=message):
        score_files(write("answers.csv", rows, header), gold)
    with pytest.raises(UserError, match="no CSV file"):
        score_files(gold.with_name("answer.zip"), gold)
    turned = [["7", *(f"{float(label)}" for label in row[3:]), *row[:3]] for row in GOLD]
    turned_header = ("id", "sentiment", "sarcasm", "source", "variety", "text")
    assert score_files(write("answers.csv", turned, turned_header), gold).score == 1.0


def test_the_interval_is_that_of_drawing_texts_within_varieties() -> None:
    draw = np.random.default_rng(0)
    varieties = np.array(["en-AU"] * 150 + ["en-UK"] * 90)
    gold = {task: draw.integers(0, 2, 240) for task in ("sentiment", "sarcasm")}
    hard = draw.random(240) < 0.3  # the same texts are hard for both tasks
    predicted = {task: np.where(hard, 1 - labels, labels) for task, labels in gold.items()}
    found = shared_task_score(gold, predicted, varieties.tolist(), seed=1)
    slow = []

    def f1(task: str, part: np.ndarray[Any, Any]) -> float:
        own = [2 * ((gold[task][part] == c) & (predicted[task][part] == c)).sum() for c in (0, 1)]
        seen = [((s[task][part] == c).sum()) for s in (gold, predicted) for c in (0, 1)]
        return float(own[0] / (seen[0] + seen[2]) + own[1] / (seen[1] + seen[3])) / 2

    for _ in range(600):
        parts = [draw.choice(150, 150), 150 + draw.choice(90, 90)]
        slow.append(np.mean([min(f1(task, part) for part in parts) for task in gold]))
    assert found.interval == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=0.015)
    again = shared_task_score(gold, predicted, varieties.tolist(), seed=1)
    assert again == found
    assert again.interval != shared_task_score(gold, predicted, varieties.tolist(), seed=2).interval


# An entry


@pytest.fixture(scope="module")
def models(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One model for both tasks, and one for each."""
    folder = tmp_path_factory.mktemp("models")
    recipe = Recipe().changed(
        data__where={"variety": "en-AU", "source": "review"},
        model__encoder=str(tiny_folder),
        training__epochs=1,
        training__batch_texts=64,
    )
    tasks = {"both": None, "sentiment": ["sentiment"], "sarcasm": ["sarcasm"]}
    for name, chosen in tasks.items():
        train(recipe.changed(data__tasks=chosen), folder / name)
    return {name: str(folder / name) for name in tasks}


@pytest.fixture
def data(write: Write) -> Path:
    rows = [["reddit", ("en-AU", "en-UK")[n % 2], text, ""] for n, text in enumerate(TEXTS)]
    return write("test.csv", rows, ["source", "variety", "text", "sentiment"])


def submit(data: Path, out: Path, *models: str) -> int:
    given_models = [word for model in models for word in ("--model", model)]
    return main(["score", "--submit", str(data), *given_models, "--out", str(out), "--json"])


def answers_in(file: Path) -> list[list[str]]:
    with ZipFile(file) as archive:
        assert archive.namelist() == ["answer.csv"]
        return list(csv.reader(io.StringIO(archive.read("answer.csv").decode(), newline="")))


def test_rows_and_texts_are_those_of_the_input(
    models: dict[str, str], data: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "entry" / "mine.zip"
    assert submit(data, out, models["both"]) == 0
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    header, *rows = answers_in(out)
    assert tuple(header) == COLUMNS
    assert [row[2] for row in rows] == TEXTS
    assert [row[1] for row in rows] == ["en-AU", "en-UK"] * 3
    expected = Predictor.load(models["both"]).predict(TEXTS)
    for task, column in ((SENTIMENT, 3), (SARCASM, 4)):
        words = [task.labels[int(row[column])] for row in rows]
        assert words == [one.answers[task.name].label for one in expected]
    assert sum(content["answers"]["sarcasm"].values()) == content["n"] == 6
    assert "1 of 6 texts are longer than the model reads" in captured.err
    assert (out.parent / "answer.csv").read_bytes() == ZipFile(out).read("answer.csv")
    again = tmp_path / "again.zip"
    assert submit(data, again, models["both"]) == 0
    assert again.read_bytes() == out.read_bytes()


def test_a_model_for_each_task(models: dict[str, str], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "answer.zip"
    assert submit(data, out, models["sarcasm"], models["sentiment"]) == 0
    expected = Predictor.load(models["sentiment"]).predict(TEXTS)
    labels = [SENTIMENT.labels[int(row[3])] for row in answers_in(out)[1:]]
    assert labels == [one.answers["sentiment"].label for one in expected]


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
    able = [SimpleNamespace(tasks={task.name: task for task in own}) for own in tasks]
    with pytest.raises(UserError, match=message):
        answer(data, cast(list[Predictor], able))


@pytest.mark.parametrize(
    ("content", "out", "message"),
    [
        ("source,variety,text\nreddit,en-AU,fine\nreddit,en-UK, \n", "a.zip", "line 3, column 't"),
        ("source,variety\nreddit,en-AU\n", "a.zip", "no column 'text'"),
        ("source,variety,text\n", "a.zip", "has no rows"),
        ("source,variety,text\nreddit,en-AU,fine\n", "answer.csv", "name the archive"),
    ],
)
def test_bad_input_writes_nothing(
    content: str,
    out: str,
    message: str,
    models: dict[str, str],
    tmp_path: Path,
    capsys: Captured,
) -> None:
    (tmp_path / "test.csv").write_text(content)
    assert submit(tmp_path / "test.csv", tmp_path / out, models["both"]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test.csv"]


def test_the_input_is_never_overwritten(
    models: dict[str, str], data: Path, tmp_path: Path, capsys: Captured
) -> None:
    data = data.rename(tmp_path / "answer.csv")
    before = data.read_bytes()
    assert submit(data, tmp_path / "answer.zip", models["both"]) == 2
    assert "would replace" in capsys.readouterr().err
    assert data.read_bytes() == before


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        min_size=1,
        max_size=5,
    )
)
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
    monkeypatch.setattr(module, "write_bytes", lambda file, content: file.write_bytes(content[:-3]))
    with pytest.raises(UserError, match="does not come back"):
        write_submission(Submission((ROW,), ()), tmp_path / "answer.zip")


def test_a_model_trained_with_a_prefix_is_asked_with_it(data: Path) -> None:
    seen: list[str] = []

    def predict(texts: Sequence[str]) -> list[Any]:
        seen.extend(texts)
        labels = {task.name: SimpleNamespace(label=task.labels[0]) for task in (SENTIMENT, SARCASM)}
        return [SimpleNamespace(answers=labels, truncated=False, unreadable=False) for _ in texts]

    for prefix, expected in (("variety", f"reddit australian: {TEXTS[0]}"), ("none", TEXTS[0])):
        recipe = {"data": {"source": f"besstie:train.csv?prefix={prefix}"}}
        tasks = {"sentiment": SENTIMENT, "sarcasm": SARCASM}
        runtimes = [SimpleNamespace(facts={"recipe": recipe})]
        made = answer(
            data, [cast(Any, SimpleNamespace(tasks=tasks, runtimes=runtimes, predict=predict))]
        )
        assert seen[0] == expected
        assert made.rows[0][2] == TEXTS[0]  # what is handed in is the text as it came
        seen.clear()


def test_what_is_not_scored_or_not_read_is_said(models: dict[str, str], write: Write) -> None:
    rows = [["Reddit", "en-AU", "🫖"], ["Reddit", "en-UK", "\u200b"], ["Reddit", "en-IN", "tea"]]
    file = write("test.csv", rows, ["source", "variety", "text"])
    strange, unreadable = answer(file, [Predictor.load(models["both"])]).notes
    assert strange.startswith("Rows of en-IN,")
    assert strange.endswith(": 1.")
    assert unreadable.startswith("2 of 3 texts are unreadable")
