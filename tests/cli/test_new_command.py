"""`litotes new`: what it sees in a table, the recipe it writes, and that its commands are right."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_lines import Run

from litotes.cli.main import parse
from litotes.data.inspection import inspect_table
from litotes.data.sources import load
from litotes.training.recipe import read_recipe
from litotes.training.training_data import prepare

WORDS = "the tea and the scones were all that one could wish for on a day like this one"


def write_reviews(file: Path, n: int = 90, *, header: str = "id;review;mood;region") -> None:
    rows = [header]
    for number in range(n):
        mood = ("happy", "sad", "angry")[number % 3]
        rows.append(f"{number};{WORDS[: 20 + number % 40]} {number};{mood};{'NS'[number % 2]}")
    file.write_text("\ufeff" + "\n".join([*rows, f"{n};;sad;N", f"{n + 1}; ;sad;S", ""]))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_becomes_a_recipe_and_five_commands(run: Run) -> None:
    write_reviews(Path("reviews.csv"))
    found = json.loads(run("new reviews.csv --json").out)
    assert (found["text"], found["label"], found["compare"]) == ("review", "mood", "region")
    assert found["ids"] == ["id"]
    assert found["labels"] == ["angry", "happy", "sad"]
    recipe = read_recipe(Path(found["recipe"]))
    data = prepare(recipe)
    assert recipe.data.source == found["source"]
    assert data.train.tasks["mood"].labels == ("angry", "happy", "sad")
    assert data.test is not None
    assert len(data.test) == 18
    names = [shlex.split(command)[1] for command in found["commands"]]
    assert names == ["audit", "train", "matrix", "predict", "serve"]
    for command in found["commands"]:
        assert parse(shlex.split(command)[1:]).command
    run(found["commands"][0].removeprefix("litotes "))


def test_a_recipe_is_not_overwritten(run: Run) -> None:
    write_reviews(Path("reviews.csv"))
    Path("reviews.toml").write_text("mine")
    assert "reviews.toml is already there" in run("new reviews.csv", code=2).err
    assert Path("reviews.toml").read_text() == "mine"
    printed = run("new reviews.csv --out other.toml").out
    assert "labels: mood (angry, happy, sad)" in printed
    assert "litotes train other.toml --out runs/other" in printed


def test_odd_names_of_columns_and_files_survive(run: Run) -> None:
    write_reviews(Path("my re'views.csv"), header='id;What & "why"?;Mood of it;region')
    found = json.loads(run("new", "my re'views.csv", "--label", "Mood of it", "--json").out)
    recipe = read_recipe(Path(found["recipe"]))
    assert list(load(recipe.data.source).tasks) == ["Mood_of_it"]
    audit = shlex.split(found["commands"][0])
    assert audit[-1] == recipe.data.source


def test_what_cannot_be_told_is_asked_for(run: Run) -> None:
    rows = [f"{WORDS} {n},{'ab'[n % 2]},{'cd'[n // 2 % 2]}" for n in range(40)]
    Path("t.csv").write_text("\n".join(["text,one,other", *rows, ""]))
    told = run("new t.csv", code=2).err
    assert "2 columns may be the labels: one (a, b); other (c, d)" in told
    assert "--label COLUMN" in told
    run("new t.csv --label other")
    Path("ids.csv").write_text("a,b\n" + "".join(f"{n},{n % 2}\n" for n in range(9)))
    assert "--text COLUMN" in run("new ids.csv", code=2).err


@pytest.mark.parametrize("kind", ["json", "jsonl", "parquet"])
def test_other_kinds_of_tables(kind: str) -> None:
    rows = []
    for number in range(30):
        split = "test" if number % 5 == 0 else "train"
        rows.append({"text": f"{WORDS} {number}", "stars": number % 5 + 1, "part": split})
    file = Path(f"t.{kind}")
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        dated = pa.table({**pa.Table.from_pylist(rows).to_pydict(), "tags": [["a"]] * 30})
        pq.write_table(dated, file)
    elif kind == "json":
        file.write_text(json.dumps(rows))
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    facts = inspect_table(file)
    assert (facts.text.name, facts.label.name) == ("text", "stars")
    assert facts.split is not None
    assert facts.split.name == "part"
    assert not facts.is_number


def test_a_number_with_many_values_is_predicted(run: Run) -> None:
    rows = [f"{WORDS} {n},{n / 7:.3f}" for n in range(60)]
    Path("t.csv").write_text("\n".join(["text,score", *rows, ""]))
    found = json.loads(run("new t.csv --json").out)
    assert load(found["source"]).tasks["score"].is_regression
    assert shlex.split(found["commands"][2])[1] == "evaluate"


def test_a_large_table_gets_few_epochs(run: Run) -> None:
    write_reviews(Path("small.csv"), 30)
    write_reviews(Path("large.csv"), 12_000)
    epochs = []
    for name in ("small", "large"):
        run(f"new {name}.csv")
        epochs.append(read_recipe(Path(f"{name}.toml")).training.epochs)
    assert epochs[0] == 20
    assert 3 <= epochs[1] <= 5
