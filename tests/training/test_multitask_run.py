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
from litotes.model.folder import hash_folder
from litotes.prediction.predictor import Predictor
from litotes.training import held_out
from litotes.training.recipe import Recipe, TrainingSettings
from litotes.training.run import train

TEXTS = ["The queue was great.", "Love it. Not.", "a bad tea"]


@pytest.mark.slow
def test_a_model_per_task_answers_as_one(tiny_recipe: Recipe, tmp_path: Path) -> None:
    recipe = tiny_recipe.changed(model__separate=True, training__epochs=1)
    run = train(recipe, tmp_path / "run")
    names = ["litotes.json", "manifest.json", "recipe.json", "sarcasm", "scores.json", "sentiment"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == names
    assert [set(model.classifier.tasks) for model in run.models] == [{"sentiment"}, {"sarcasm"}]
    assert {row.scores.task for row in run.scores} == {"sentiment", "sarcasm"}
    answers = Predictor.load(tmp_path / "run", device="cpu").predict(TEXTS)
    for task in ("sentiment", "sarcasm"):
        alone = Predictor.load(tmp_path / "run" / task, device="cpu").predict(TEXTS)
        assert [one.answers[task] for one in answers] == [one.answers[task] for one in alone]
    again = train(recipe, tmp_path / "run", resume=True)
    assert [row.as_json() for row in again.scores] == [row.as_json() for row in run.scores]
    with pytest.raises(UserError, match="a model per task"):
        load_model(tmp_path / "run")
    with pytest.raises(UserError, match="already holds"):
        train(recipe, tmp_path / "run")
    with pytest.raises(UserError, match="Two of the models answer"):
        Predictor(*run.models, run.models[0])
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="not of a run"):
        train(recipe, tmp_path / "others")


def test_calibration_is_saved_and_applied(tiny_recipe: Recipe, tmp_path: Path) -> None:
    run = train(tiny_recipe.changed(training__epochs=1), tmp_path / "run")
    assert set(run.model.calibration) == {"sentiment", "sarcasm"}
    assert all(one.n > 0 for one in run.model.calibration.values())
    file = tmp_path / "run" / "litotes.json"
    content, answers = json.loads(file.read_text()), []
    for calibration in ({}, {"sarcasm": Calibration(4.0, 0.001, 10).as_json()}):
        file.write_text(json.dumps(content | {"calibration": calibration}))
        hash_folder(file.parent).write(file.parent)
        predicted = Predictor.load(tmp_path / "run", device="cpu").predict(TEXTS)
        answers.append([one.answers["sarcasm"] for one in predicted])
    before, after = answers
    assert {answer.label for answer in after} == {"sarcastic"}
    for one, two in zip(before, after, strict=True):
        assert one.probability is not None
        yes = one.probability if one.label == "sarcastic" else 1 - one.probability
        # softmax(z / 4)
        assert two.probability == pytest.approx(1 / (1 + ((1 - yes) / yes) ** 0.25), abs=1e-6)


def test_texts_with_one_of_two_labels_train_and_labels_are_mapped(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    words, rows = ("negative", "neutral", "positive"), ["text,sentiment,sarcasm,split"]
    for number in range(36):
        labels = (f"{words[number % 3]},", f",{number // 3 % 2}")[number % 4 == 0]
        rows.append(f"text {number},{labels},train")
    rows += [f"other {number},{words[number % 3]},{number // 2 % 2},test" for number in range(9)]
    (tmp_path / "made.csv").write_text("\n".join(rows) + "\n")
    source = f"table:{tmp_path / 'made.csv'}?label.sentiment=sentiment&label.sarcasm=sarcasm"
    recipe = tiny_recipe.changed(
        data__source=f"{source}&split=split",
        data__where={},
        data__labels={"sentiment": {"neutral": ""}},
        model__head="crosstalk",
        training__balancing="pcgrad",
        training__epochs=1,
    )
    run = train(recipe, tmp_path / "run")
    assert {row.scores.task for row in run.scores} == {"sentiment", "sarcasm"}
    assert run.model.facts["data"]["n_train"] > 18
    assert run.model.classifier.tasks["sentiment"].labels == ("negative", "positive")
    arrows = "negative → negative, neutral → (no label), positive → positive"
    assert f"Labels of sentiment in made.csv: {arrows}." in run.notes
    with pytest.raises(UserError, match="Did you mean 'neutral'"):
        train(recipe.changed(data__labels={"sentiment": {"neutrl": ""}}), tmp_path / "other")


# What held-out texts say

SARCASM = Task("sarcasm", ("literal", "sarcastic"))
# right in group 0, half right in group 1
LOGITS = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1]])
GOLD = torch.tensor([0, 1, 0, 1, 0, 1, MISSING])
GROUPS = torch.tensor([0, 0, 0, 0, 1, 1, 1])


def held_out_texts(
    monkeypatch: pytest.MonkeyPatch, *answers: tuple[Task, torch.Tensor, torch.Tensor]
) -> tuple[Any, Any]:
    """A classifier and inputs with these gold labels and logits."""
    targets = {task.name: gold for task, gold, _ in answers}
    groups = GROUPS.repeat(len(answers[0][1]) // len(GROUPS))
    texts = TextSet([Pieces([1], [0], False)] * len(groups), targets, groups, ("a", "b"))
    logits = {task.name: given for task, _, given in answers}
    monkeypatch.setattr(held_out, "all_logits", lambda source, classifier: logits)
    tasks = {task.name: task for task, *_ in answers}
    return type("Stub", (), {"tasks": tasks})(), type("Stub", (), {"texts": texts})()


def test_a_held_out_score_is_a_mean_over_tasks_or_the_worst_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    several = Task("moods", ("fond", "glad"), multi_label=True)
    moods = torch.tensor([[1.0, 0], [1, 1], [0, 1], [0, 0], [1, 0], [1, 1], [float("nan")] * 2])
    stars = torch.tensor([1.0, 2, 3, 4, 5, float("nan"), float("nan")])
    given = torch.tensor([1.0, 2, 4, 3, 5, 9, 9])[:, None]
    found = held_out_texts(
        monkeypatch,
        (SARCASM, GOLD, LOGITS),
        (several, moods, torch.nan_to_num(moods) - 0.5),
        (Task("stars", ()), stars, given),
        (Task("same", ("a", "b")), torch.zeros(7, dtype=torch.long), LOGITS),  # tells nothing
    )
    score = held_out.held_out_score(*found, worst_group=False)
    pearson = np.corrcoef([1, 2, 3, 4, 5], [1, 2, 4, 3, 5])[0, 1]
    assert score == pytest.approx(np.mean([np.mean([4 / 5, 6 / 7]), 1.0, pearson]))
    alone = held_out_texts(monkeypatch, (SARCASM, GOLD, LOGITS))
    assert held_out.held_out_score(*alone, worst_group=True) == pytest.approx(1 / 3)
    same = held_out_texts(monkeypatch, (SARCASM, torch.ones(7, dtype=torch.long), LOGITS))
    assert held_out.held_out_score(*same, worst_group=False) is None
    names = [
        held_out.score_name(tasks, worst_group=worst)
        for tasks, worst in (([SARCASM], False), ([SARCASM], True), ([SARCASM, several], False))
    ]
    assert names == ["macro-F1", "macro-F1 of the worst group", "macro-F1"]
    assert held_out.score_name([SARCASM, Task("stars", ())], worst_group=False) == "score"


@pytest.mark.parametrize("selection", ["mean", "worst_group"])
def test_calibration_is_fitted_as_told(monkeypatch: pytest.MonkeyPatch, selection: str) -> None:
    doubtful = LOGITS.repeat(20, 1) + torch.tensor([2.0, 0.0])  # one half is too much to ask
    numbers = Task("stars", ()), torch.ones(140), torch.ones(140, 1)
    classifier, inputs = held_out_texts(monkeypatch, (SARCASM, GOLD.repeat(20), doubtful), numbers)

    def fitted(how: str) -> dict[str, Calibration]:
        settings = TrainingSettings(calibration=how, selection=selection)
        return held_out.fit_calibrations(classifier, inputs, settings)

    assert fitted("none") == {}
    (name, full), (_, plain) = *fitted("full").items(), *fitted("temperature").items()
    assert (name, full.n, full.temperature) == ("sarcasm", 120, plain.temperature)
    assert plain.threshold is None
    if selection == "mean":
        assert full.threshold is not None
        assert full.threshold < 0.5
    else:  # no threshold helps the group that is given one answer alone
        assert full.threshold is None
