"""A table without a split: trained, tested, scored again on the same texts and on no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.data.sources import load_with_test_part
from litotes.training.recipe import Recipe
from litotes.training.run import train
from litotes.training.training_data import prepare


def write_reviews(file: Path, *, start: int = 0, n: int = 60) -> None:
    """With `;`, a byte-order mark, three labels, ids, two empty texts and regions."""
    rows = ["id;review;mood;region"]
    for number in range(start, start + n):
        mood = ("happy", "sad", "angry")[number % 3]
        region = ("north", "south")[number // 3 % 2]
        rows.append(f"{number};the tea {number} is {mood};{mood};{region}")
    rows += [f"{start + n};;sad;north", f"{start + n + 1}; ;happy;south", ""]
    file.write_text("\ufeff" + "\n".join(rows))


@pytest.fixture
def reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_reviews(Path("reviews.csv"))
    return "table:reviews.csv?text=review&label=mood"


@pytest.fixture
def recipe(tiny_recipe: Recipe, reviews: str) -> Recipe:
    return tiny_recipe.changed(data__source=reviews, data__where={}, training__epochs=1)


def scores_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, int, str]:
    """Exit code, number of texts scored, and notes of `litotes evaluate`."""
    code = main(["evaluate", *arguments, "--json", "--device", "cpu"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out)[0]["n"] if printed.out else 0, printed.err


def test_a_model_is_scored_on_what_it_has_not_seen(
    recipe: Recipe, reviews: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(recipe, Path("run"))
    (row,) = run.scores
    assert (row.scores.task, row.scores.n) == ("mood", 12)
    assert any("2 of 62 rows were left out" in note for note in run.notes)
    assert any("12 of its 60 texts were set aside" in note for note in run.notes)
    data = prepare(recipe)
    tested = [example.text for example in load_with_test_part(reviews).where(split="test")]
    assert [example.text for example in data.test or ()] == tested
    assert not {example.text for example in data.seen()} & set(tested)
    assert len(data.seen()) + len(tested) == 60
    code, n, notes = scores_of(capsys, "--model", "run", "--data", reviews)
    assert (code, n) == (0, 12)
    assert "the 12 texts that the model was not trained on are used" in notes
    assert "2 of 62 rows were left out" in notes
    assert json.loads(Path("run/scores.json").read_text())[0]["n"] == 12
    # the same texts in another file, and under another split
    Path("copy.csv").write_bytes(Path("reviews.csv").read_bytes())
    copy = reviews.replace("reviews.csv", "copy.csv")
    assert scores_of(capsys, "--model", "run", "--data", copy)[1] == 12
    code, _, notes = scores_of(capsys, "--model", "run", "--data", f"{copy}&test=0.5")
    assert "WARNING: the model was trained on" in notes
    _, _, notes = scores_of(capsys, "--model", "run", "--data", reviews, "--where", "split=train")
    assert "WARNING: the model was trained on 48 of these 60 texts" in notes
    # another table without a split is scored whole
    write_reviews(Path("others.csv"), start=100, n=30)
    others = reviews.replace("reviews.csv", "others.csv")
    code, n, notes = scores_of(capsys, "--model", "run", "--data", others)
    assert (code, n) == (0, 30)
    assert "all of its 30 texts are used" in notes


def test_nothing_to_score_is_a_sentence(
    recipe: Recipe, reviews: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"{reviews}&test=0"
    Path("r.json").write_text(json.dumps(recipe.changed(data__source=source).model_dump()))
    assert main(["train", "r.json", "--out", "run", "--device", "cpu"]) == 0
    printed = capsys.readouterr()
    assert "macro-F1" not in printed.out
    assert "Add test=0.2" in printed.err
    code, _, notes = scores_of(capsys, "--model", "run", "--data", reviews)
    assert code == 2
    assert "trained on all 60 texts of reviews.csv" in notes
    write_reviews(Path("others.csv"), start=100)
    code, _, notes = scores_of(capsys, "--model", "run", "--data", "table:others.csv?text=review")
    assert code == 2
    assert "label.mood=COLUMN" in notes


def test_words_that_are_not_known_are_mapped_in_one_line(
    recipe: Recipe, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"the tea {number},{('pos', 'neg', 'meh')[number % 3]}" for number in range(60)]
    Path("mixed.csv").write_text("\n".join(["text,mood", *rows, ""]))
    source = "table:mixed.csv?label.sentiment=mood"
    mixed = recipe.changed(data__source=source)
    with pytest.raises(UserError, match=r"'meh' is not a known label of sentiment.*data\.labels"):
        prepare(mixed)
    Path("r.json").write_text(json.dumps(mixed.model_dump()))
    change = "data.labels.sentiment.meh=neutral"
    assert main(["train", "r.json", "--set", change, "--out", "run", "--device", "cpu"]) == 0
    capsys.readouterr()
    code, n, _ = scores_of(capsys, "--model", "run", "--data", source)
    assert (code, n) == (0, 12)
