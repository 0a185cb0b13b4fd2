"""Runs with several tasks: a model each or one for all, groups, calibration, labels that are
missing or mapped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.values import MISSING, Task
from litotes.encoder.packing import TextSet
from litotes.encoder.tokenizer import Pieces
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import load_model
from litotes.model.folder import hash_folder, open_model
from litotes.prediction.predictor import Predictor
from litotes.training import held_out
from litotes.training.recipe import Recipe
from litotes.training.run import train
from litotes.training.trainer import Trainer

TEXTS = ["The queue was great.", "Love it. Not.", "a bad tea"]


class Killed(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {
            "model__head": "crosstalk",
            "training__balancing": "pcgrad",
            "training__groups": "group_dro",
            "training__group_by": "source",
        },
        {"model__head": "multitask", "training__balancing": "uncertainty"},
    ],
    ids=["pcgrad", "uncertainty"],
)
def test_what_a_balancing_learns_survives_a_kill(
    tiny_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    recipe = tiny_recipe.changed(training__checkpoint_seconds=0, **changes)
    whole = train(recipe, tmp_path / "whole")
    original = Trainer._step

    def dying(self: Trainer, places: Any) -> None:
        if self.state.step == 4:
            raise Killed
        original(self, places)

    monkeypatch.setattr(Trainer, "_step", dying)
    with pytest.raises(Killed):
        train(recipe, tmp_path / "killed")
    monkeypatch.undo()
    again = train(recipe, tmp_path / "killed", resume=True)
    for name, tensor in whole.model.classifier.state_dict().items():
        assert torch.equal(again.model.classifier.state_dict()[name], tensor), name


@pytest.mark.slow
def test_a_model_per_task_answers_as_one(tiny_recipe: Recipe, tmp_path: Path) -> None:
    recipe = tiny_recipe.changed(model__separate=True, training__epochs=1)
    run = train(recipe, tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "sentiment",
        "sarcasm",
        "litotes.json",
        "manifest.json",
        "recipe.json",
        "scores.json",
    }
    assert [set(model.classifier.tasks) for model in run.models] == [{"sentiment"}, {"sarcasm"}]
    assert {row.scores.task for row in run.scores} == {"sentiment", "sarcasm"}
    answers = Predictor.load(tmp_path / "run", device="cpu").predict(TEXTS)
    for task in ("sentiment", "sarcasm"):
        alone = Predictor.load(tmp_path / "run" / task, device="cpu").predict(TEXTS)
        assert [one.answers[task] for one in answers] == [one.answers[task] for one in alone]
    assert [row.as_json() for row in train(recipe, tmp_path / "run", resume=True).scores] == [
        row.as_json() for row in run.scores
    ]
    with pytest.raises(UserError, match="a model per task"):
        load_model(tmp_path / "run")
    with pytest.raises(UserError, match="already holds"):
        train(recipe, tmp_path / "run")


def test_a_folder_of_others_is_left_alone(tiny_recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="not of a run"):
        train(tiny_recipe.changed(model__separate=True), tmp_path)


@pytest.mark.parametrize("parts", [["../elsewhere"], "sentiment", [1]])
def test_parts_are_names(parts: object, tmp_path: Path) -> None:
    (tmp_path / "litotes.json").write_text(json.dumps({"format": 1, "parts": parts}))
    hash_folder(tmp_path).write(tmp_path)
    with pytest.raises(UserError, match="parts"):
        open_model(tmp_path)


def test_two_models_for_one_task_are_told_apart(tiny_recipe: Recipe, tmp_path: Path) -> None:
    model = train(tiny_recipe.changed(training__epochs=1), tmp_path / "run").model
    with pytest.raises(UserError, match="Two of the models answer"):
        Predictor(model, model)


def test_calibration_is_saved_and_applied(tiny_recipe: Recipe, tmp_path: Path) -> None:
    run = train(tiny_recipe.changed(training__epochs=1), tmp_path / "run")
    assert set(run.model.calibration) == {"sentiment", "sarcasm"}
    assert all(one.n > 0 for one in run.model.calibration.values())
    file = tmp_path / "run" / "litotes.json"
    content = json.loads(file.read_text())
    plain = content | {"calibration": {}}
    file.write_text(json.dumps(plain))
    hash_folder(file.parent).write(file.parent)
    before = [
        one.answers["sarcasm"]
        for one in Predictor.load(tmp_path / "run", device="cpu").predict(TEXTS)
    ]
    always = content | {"calibration": {"sarcasm": Calibration(4.0, 0.001, 10).as_json()}}
    file.write_text(json.dumps(always))
    hash_folder(file.parent).write(file.parent)
    after = [
        one.answers["sarcasm"]
        for one in Predictor.load(tmp_path / "run", device="cpu").predict(TEXTS)
    ]
    assert {answer.label for answer in after} == {"sarcastic"}
    for one, two in zip(before, after, strict=True):
        assert one.probability is not None
        assert two.probability is not None
        yes = one.probability if one.label == "sarcastic" else 1 - one.probability
        # softmax(z / 4)
        assert two.probability == pytest.approx(1 / (1 + ((1 - yes) / yes) ** 0.25), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["none", "temperature"])
def test_calibration_can_be_left_out(tiny_recipe: Recipe, tmp_path: Path, how: str) -> None:
    model = train(
        tiny_recipe.changed(training__epochs=1, training__calibration=how), tmp_path / "run"
    ).model
    assert bool(model.calibration) == (how == "temperature")
    assert all(one.threshold is None for one in model.calibration.values())


def test_without_held_out_texts_nothing_is_calibrated_and_that_is_said(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    run = train(tiny_recipe.changed(training__epochs=1, training__held_out=0.0), tmp_path / "run")
    assert not run.model.calibration
    assert any("Not calibrated" in note for note in run.notes)


def test_texts_with_one_of_two_labels_still_train(tiny_recipe: Recipe, tmp_path: Path) -> None:
    rows = ["text,sentiment,sarcasm,split"]
    for number in range(24):
        labels = (f"{number % 2},", f",{number // 3 % 2}")[number % 3 == 0]
        rows.append(f"text {number},{labels},train")
    rows += [f"other {number},{number % 2},{number // 2 % 2},test" for number in range(8)]
    (tmp_path / "made.csv").write_text("\n".join(rows) + "\n")
    source = (
        f"table:{tmp_path / 'made.csv'}?label.sentiment=sentiment&label.sarcasm=sarcasm&split=split"
    )
    recipe = tiny_recipe.changed(
        data__source=source,
        data__where={},
        model__head="crosstalk",
        training__balancing="pcgrad",
    )
    run = train(recipe, tmp_path / "run")
    assert {row.scores.task for row in run.scores} == {"sentiment", "sarcasm"}
    assert run.model.facts["data"]["n_train"] > 12


def test_labels_are_mapped_and_the_mapping_is_said(tiny_recipe: Recipe, tmp_path: Path) -> None:
    words = ("negative", "neutral", "positive")
    rows = [
        f"text {number},{words[number % 3]},{('train', 'test')[number > 24]}"
        for number in range(36)
    ]
    (tmp_path / "made.csv").write_text("\n".join(["text,sentiment,split", *rows]) + "\n")
    source = f"table:{tmp_path / 'made.csv'}?label.sentiment=sentiment&split=split"
    recipe = tiny_recipe.changed(
        data__source=source, data__where={}, data__labels={"sentiment": {"neutral": ""}}
    )
    run = train(recipe, tmp_path / "run")
    assert run.model.classifier.tasks["sentiment"].labels == ("negative", "positive")
    assert (
        "Labels of sentiment in made.csv: negative → negative, neutral → (no label), positive →"
        " positive." in run.notes
    )
    with pytest.raises(UserError, match="Did you mean 'neutral'"):
        train(recipe.changed(data__labels={"sentiment": {"neutrl": ""}}), tmp_path / "other")


class _Fixed:
    """Inputs whose logits are given."""

    def __init__(self, texts: TextSet) -> None:
        self.texts = texts


def test_the_worst_group_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("sarcasm", ("literal", "sarcastic"))
    gold = torch.tensor([0, 1, 0, 1, 0, 1, MISSING])
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1])
    # right in group 0, half right in group 1
    logits = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1]])
    texts = TextSet([Pieces([1], [0], False)] * 7, {"sarcasm": gold}, groups, ("a", "b"))
    monkeypatch.setattr(held_out, "all_logits", lambda source, classifier: {"sarcasm": logits})
    classifier: Any = type("Stub", (), {"tasks": {"sarcasm": task}})()
    inputs: Any = _Fixed(texts)
    assert held_out.held_out_score(classifier, inputs, worst_group=True) == pytest.approx(1 / 3)
    assert held_out.held_out_score(classifier, inputs, worst_group=False) == pytest.approx(
        np.mean([4 / 5, 6 / 7])
    )
