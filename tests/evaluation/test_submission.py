"""A submission: the rows of the input and nothing else, texts byte for byte, read back before it is
called done.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    write_submission,
)
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import Recipe
from litotes.training.run import train

TEXTS = [
    "Top spot",
    'She said "no",\nthen\r\n"yes", twice',
    " spaces around, and a tab\t",
    "naïve café 🫖\rold Mac",
    "=1+1",
    "tea " * 200,
]


@pytest.fixture(scope="module")
def models(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One model for both tasks, and one for each."""
    folder = tmp_path_factory.mktemp("models")
    recipe = Recipe().changed(
        data__where__variety="en-AU",
        model__encoder=str(tiny_folder),
        training__epochs=1,
        training__batch_texts=64,
    )
    tasks = {"both": None, "sentiment": ["sentiment"], "sarcasm": ["sarcasm"]}
    for name, chosen in tasks.items():
        train(recipe.changed(data__tasks=chosen), folder / name)
    return {name: str(folder / name) for name in tasks}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "test.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        rows = [["reddit", ("en-AU", "en-UK")[n % 2], text, ""] for n, text in enumerate(TEXTS)]
        csv.writer(stream).writerows([["source", "variety", "text", "sentiment"], *rows])
    return file


def answers_in(file: Path) -> list[list[str]]:
    with ZipFile(file) as archive:
        assert archive.namelist() == ["answer.csv"]
        return list(csv.reader(io.StringIO(archive.read("answer.csv").decode(), newline="")))


def test_rows_and_texts_are_those_of_the_input(
    models: dict[str, str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "entry" / "mine.zip"
    assert (
        main(
            ["score", "--submit", str(data), "--model", models["both"], "--out", str(out), "--json"]
        )
        == 0
    )
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    header, *rows = answers_in(out)
    assert tuple(header) == COLUMNS
    assert [row[2] for row in rows] == TEXTS
    assert [row[1] for row in rows] == ["en-AU", "en-UK"] * 3
    expected = Predictor.load(models["both"]).predict(TEXTS)
    assert [row[3:] for row in rows] == [
        [
            str(SENTIMENT.labels.index(str(one.answers["sentiment"].label))),
            str(SARCASM.labels.index(str(one.answers["sarcasm"].label))),
        ]
        for one in expected
    ]
    assert sum(content["answers"]["sarcasm"].values()) == content["n"] == 6
    assert "1 of 6 texts are longer than the model reads" in captured.err
    assert (out.parent / "answer.csv").read_bytes() == ZipFile(out).read("answer.csv")
    assert score_files(out.parent / "answer.csv", out.parent / "answer.csv").score == 1.0


def test_the_same_bytes_twice(models: dict[str, str], data: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert (
            main(
                [
                    "score",
                    "--submit",
                    str(data),
                    "--model",
                    models["both"],
                    "--out",
                    str(tmp_path / name / "answer.zip"),
                ]
            )
            == 0
        )
    assert (tmp_path / "a" / "answer.zip").read_bytes() == (
        tmp_path / "b" / "answer.zip"
    ).read_bytes()


def test_a_model_for_each_task(models: dict[str, str], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "answer.zip"
    assert (
        main(
            [
                "score",
                "--submit",
                str(data),
                "--model",
                models["sarcasm"],
                "--model",
                models["sentiment"],
                "--out",
                str(out),
            ]
        )
        == 0
    )
    sentiment = [
        str(one.answers["sentiment"].label)
        for one in Predictor.load(models["sentiment"]).predict(TEXTS)
    ]
    assert [SENTIMENT.labels[int(row[3])] for row in answers_in(out)[1:]] == sentiment


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["sentiment"], "No model answers sarcasm"),
        (["both", "sarcasm"], "2 models answer sarcasm"),
        (["both", "both"], "2 models answer"),
    ],
)
def test_tasks_and_models_must_fit(
    chosen: list[str],
    message: str,
    models: dict[str, str],
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given_models = [argument for name in chosen for argument in ("--model", models[name])]
    assert (
        main(["score", "--submit", str(data), *given_models, "--out", str(tmp_path / "answer.zip")])
        == 2
    )
    assert message in capsys.readouterr().err
    assert not (tmp_path / "answer.zip").exists()


def answering(*tasks: Task) -> Predictor:
    return cast(Predictor, SimpleNamespace(tasks={task.name: task for task in tasks}))


def test_labels_must_be_those_of_the_task(data: Path) -> None:
    with pytest.raises(
        UserError, match="negative, neutral, positive, the shared task takes negative and positive"
    ):
        answer(data, [answering(SENTIMENT_3, SARCASM)])
    with pytest.raises(UserError, match="Model 2 answers mood"):
        answer(data, [answering(SENTIMENT, SARCASM), answering(Task("mood", ("a", "b")))])


def test_a_variety_that_is_not_scored_is_said(
    models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test.csv"
    file.write_text("source,variety,text\nreddit,en-IN,Good tea yaar\nreddit,en-UK,Tea\n")
    assert (
        main(
            [
                "score",
                "--submit",
                str(file),
                "--model",
                models["both"],
                "--out",
                str(tmp_path / "out.zip"),
            ]
        )
        == 0
    )
    assert (
        "Rows of en-IN, which the shared task does not score and which are answered all the"
        " same: 1." in capsys.readouterr().err
    )
    assert len(answers_in(tmp_path / "out.zip")) == 3


@pytest.mark.parametrize(
    ("content", "out", "message"),
    [
        (
            "source,variety,text\nreddit,en-AU,fine\nreddit,en-UK, \n",
            "answer.zip",
            "test.csv, line 3, column 'text' is empty",
        ),
        ("source,variety\nreddit,en-AU\n", "answer.zip", "no column 'text'"),
        ("source,variety,text\n", "answer.zip", "has no rows"),
        ("source,variety,text\nreddit,en-AU,fine\n", "answer.csv", "name the archive"),
    ],
)
def test_bad_input_writes_nothing(
    content: str,
    out: str,
    message: str,
    models: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "test.csv").write_text(content)
    assert (
        main(
            [
                "score",
                "--submit",
                str(tmp_path / "test.csv"),
                "--model",
                models["both"],
                "--out",
                str(tmp_path / out),
            ]
        )
        == 2
    )
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test.csv"]


def test_the_input_is_never_overwritten(
    models: dict[str, str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data.rename(tmp_path / "answer.csv")
    before = data.read_bytes()
    assert (
        main(
            [
                "score",
                "--submit",
                str(data),
                "--model",
                models["both"],
                "--out",
                str(tmp_path / "answer.zip"),
            ]
        )
        == 2
    )
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
    made = Submission(tuple(("reddit", "en-AU", text, "0", "1") for text in texts), ())
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_bytes(made.as_csv())
    assert [row.values["text"] for row in read_wide(file, needs=COLUMNS)] == texts
    assert [row[2] for row in csv.reader(io.StringIO(made.as_csv().decode(), newline=""))][
        1:
    ] == texts


def test_a_damaged_archive_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "write_bytes", lambda file, content: file.write_bytes(content[:-3]))
    with pytest.raises(UserError, match="does not come back"):
        write_submission(Submission((ROW,), ()), tmp_path / "answer.zip")


ROW = ("reddit", "en-AU", "fine", "0", "1")


def test_a_model_trained_with_a_prefix_is_asked_with_it(
    tiny_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        f"{('google', 'reddit')[n % 2]},en-AU,text number {n},{n % 2},{n // 2 % 2}"
        for n in range(16)
    ]
    (tmp_path / "train.csv").write_text(
        "\n".join(["source,variety,text,sentiment,sarcasm", *rows]) + "\n"
    )
    recipe = Recipe().changed(
        model__encoder=str(tiny_folder), training__epochs=1, training__held_out=0.0
    )
    seen = []
    predict = Predictor.predict
    monkeypatch.setattr(
        Predictor, "predict", lambda self, texts: seen.extend(texts) or predict(self, texts)
    )
    prefixed = f"reddit australian: {TEXTS[0]}"
    for prefix, expected in (("variety", prefixed), ("none", TEXTS[0])):
        run = train(
            recipe.changed(data__source=f"besstie:{tmp_path / 'train.csv'}?prefix={prefix}"),
            tmp_path / prefix,
        )
        assert any("prefix=variety" in note for note in run.notes) == (prefix == "variety")
        seen.clear()
        made = answer(data, [Predictor(*run.models, device="cpu")])
        assert seen[0] == expected
        assert made.rows[0][2] == TEXTS[0]  # what is handed in is the text as it came


def test_unreadable_texts_are_counted(models: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "test.csv"
    file.write_text("source,variety,text\nReddit,en-AU,🫖\nReddit,en-UK,\u200b\nReddit,en-UK,tea\n")
    (note,) = answer(file, [Predictor.load(models["both"])]).notes
    assert note == (
        "2 of 3 texts are unreadable: the model knows no part of them, and their answers"
        " say nothing."
    )
