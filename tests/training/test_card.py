"""The model card quotes words of others as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tiny_models import SENTIMENT, model_of

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.evaluation.evaluate import CellScores
from litotes.evaluation.scores import score, score_regression
from litotes.model.checkpoint import Model
from litotes.training.card import model_card
from litotes.training.recipe import Recipe

HOSTILE = "a|b <script>alert(1)</script> [x](http://y) *c*\n# d \x1b[31m`e` \u202e\udce9"


def header_of(model: Model, rows: list[CellScores]) -> Any:
    yaml = pytest.importorskip("yaml")  # comes with transformers
    _, header, _ = model_card(model, rows).split("---\n", 2)
    return yaml.safe_load(header)


def test_the_header_is_the_hubs(tiny: pretrained.Pretrained) -> None:
    tasks = Task("sentiment", ("negative", "positive")), Task("grade", ())
    facts = {"recipe": Recipe().model_dump(), "data": {"n_train": 3}, "notes": []}
    model = replace(model_of(tiny, *tasks), facts=facts, base="minilm")
    regression = score_regression([1.0, 2.0, 3.0], [1.0, 2.0, 3.5], tasks[1])
    classes = score([0, 1, 1], [0, 1, 0], tasks[0])
    rows = [CellScores("all", classes), CellScores("en-UK", classes), CellScores("all", regression)]
    header = header_of(model, rows)
    assert header["language"] == "en"
    assert header["library_name"] == "litotes"
    assert header["pipeline_tag"] == "text-classification"
    assert header["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert header["tags"] == ["sentiment", "grade"]
    assert header["metrics"] == ["f1", "pearsonr"]
    (index,) = header["model-index"]
    values = {result["task"]["name"]: result["metrics"][0]["value"] for result in index["results"]}
    assert values == {
        "sentiment": pytest.approx(classes.macro_f1, abs=1e-4),
        "grade": pytest.approx(regression.pearson, abs=1e-4),
    }
    assert "model-index" not in header_of(model, [])
    named = replace(model, base=f"me/encoder@{'0' * 40}")
    assert header_of(named, [])["base_model"] == "me/encoder"
    assert "base_model" not in header_of(replace(model, base="some/folder"), [])


@pytest.mark.parametrize("name", ["yes", "1e3", "null", "- a: b", "---", "😀 'x' \"y\" \\n", "<b>"])
def test_any_name_of_a_task_is_a_text_in_the_header(tiny: pretrained.Pretrained, name: str) -> None:
    task = Task(name, ("no", "yes"))
    recipe = Recipe().changed(data__source=name)
    facts = {"recipe": recipe.model_dump(), "data": {"n_train": 3}, "notes": []}
    model = replace(model_of(tiny, SENTIMENT), facts=facts)
    model.classifier.tasks = {name: task}
    header = header_of(model, [CellScores("all", score([0, 1], [0, 1], task))])
    assert header["tags"] == [name]
    assert header["model-index"][0]["results"][0]["dataset"]["name"] == name


def test_foreign_words_stay_text(tiny: pretrained.Pretrained) -> None:
    task = Task("sentiment", (HOSTILE, "positive"))
    words = HOSTILE.removesuffix("\udce9")  # a recipe holds UTF-8 alone
    recipe = Recipe().changed(data__source=words, data__where__variety=words)
    facts = {"recipe": recipe.model_dump(), "data": {"n_train": 3}, "notes": [HOSTILE]}
    model = replace(model_of(tiny, task), facts=facts, base=HOSTILE)
    rows = [CellScores(HOSTILE, score([0, 1], [0, 1], task))]
    card = model_card(model, rows)
    plain = model_card(replace(model, facts={**facts, "notes": ["a note"]}, base="tiny"), rows)
    assert card.count("\n") == plain.count("\n")
    outside_code = "".join(card.split("`")[::2])
    assert "<script>" not in outside_code
    assert "[x](" not in outside_code
    for line in card.splitlines():
        assert line.isprintable()
    (row,) = [line for line in card.splitlines() if line.startswith("| sentiment")]
    assert row.replace("\\|", "").count("|") == 7
    assert card.encode()
