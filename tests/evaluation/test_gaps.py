"""Gaps between groups: tests err as often as they say, scores are those of outside libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, recall_score

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.numbers import confusion, macro_f1
from litotes.core.values import Answer, Example, Task
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.gaps import check_columns, cohen_kappa, find_gaps
from litotes.evaluation.reliability import ece_by_chance

TASK = Task("mood", ("calm", "angry"))
Array = np.ndarray[Any, Any]


def predictions(gold: Array, predicted: Array, groups: Array) -> TaskPredictions:
    examples, answers = [], []
    for own, given, group in zip(gold.tolist(), predicted.tolist(), groups.tolist(), strict=True):
        examples.append(Example("a", {"mood": TASK.labels[own]}, variety=group, source="s"))
        answers.append(Answer(TASK.labels[given], 0.8))
    flags = (False,) * len(examples)
    return TaskPredictions(TASK, tuple(examples), tuple(answers), flags, flags)


def simulated(
    sizes: dict[str, int], rates: dict[str, float], generator: np.random.Generator
) -> TaskPredictions:
    """Groups in which so many answers are right."""
    groups = np.repeat(list(sizes), list(sizes.values()))
    gold = (generator.random(len(groups)) < 0.4).astype(int)
    right = generator.random(len(groups)) < np.array([rates[group] for group in groups])
    return predictions(gold, np.where(right, gold, 1 - gold), groups)


def test_groups_have_the_scores_of_scikit_learn() -> None:
    result = simulated({"x": 60, "y": 90}, {"x": 0.6, "y": 0.9}, np.random.default_rng(0))
    found = find_gaps({"mood": result}, ["variety"])
    gold, predicted = result.gold(), result.predicted()
    for group in found.groups:
        own = np.array([example.variety == group.name for example in result.examples])
        sides = gold[own], predicted[own]
        assert group.macro_f1 == pytest.approx(f1_score(*sides, average="macro"))
        assert group.accuracy == pytest.approx(accuracy_score(*sides))
        assert group.kappa == pytest.approx(cohen_kappa_score(*sides))
        recalls = recall_score(*sides, average=None)
        assert list(group.recall.values()) == pytest.approx(recalls.tolist())
        assert group.ece == pytest.approx(abs(group.accuracy - 0.8))
    assert cohen_kappa(np.array([[5.0, 0.0], [0.0, 0.0]])) == 0  # of a constant
    assert {gap.name for gap in found.gaps} == {"x"}  # y is the same with another sign
    gaps = {gap.measure: gap for gap in found.gaps}
    assert list(gaps) == ["macro_f1", "accuracy", "recall calm", "recall angry"]
    first, second = found.groups
    assert gaps["accuracy"].difference == pytest.approx(first.accuracy - second.accuracy)
    assert gaps["recall calm"].n == tuple(
        int(((gold == 0) & [example.variety == name for example in result.examples]).sum())
        for name in ("x", "y")
    )
    assert gaps["accuracy"].is_significant
    smallest = min(found.gaps, key=lambda gap: gap.p)
    assert smallest.adjusted_p == pytest.approx(4 * smallest.p)
    (spread,) = found.spreads
    assert (spread.worst, spread.best) == ("x", "y")
    assert spread.spread == pytest.approx(second.macro_f1 - first.macro_f1)
    assert spread.spread_p < 0.05


def test_texts_are_dealt_to_groups_at_random() -> None:
    """The mean spread of two groups is that of shuffled texts, counted one by one."""
    generator = np.random.default_rng(1)
    result = simulated({"x": 30, "y": 50}, {"x": 0.8, "y": 0.8}, generator)
    (spread,) = find_gaps({"mood": result}, ["variety"]).spreads
    slow = []
    for _ in range(1000):
        gold, given = np.stack([result.gold(), result.predicted()])[:, generator.permutation(80)]
        parts = [
            macro_f1(confusion(gold[own], given[own], 2)) for own in (slice(30), slice(30, 80))
        ]
        slow.append(float(abs(parts[0] - parts[1])))
    assert spread.spread_by_chance == pytest.approx(np.mean(slow), rel=0.12)
    assert spread.spread_p == pytest.approx(np.mean(np.array(slow) >= spread.spread), abs=0.08)


def test_a_small_group_without_a_mistake_is_no_better_than_the_others() -> None:
    """24 of 24 right, where 97 of 100 are elsewhere, comes every second time."""
    gold = np.array([0, 1] * 212)
    groups = np.array(["x"] * 24 + ["y"] * 400)
    predicted = gold.copy()
    predicted[24:36] = 1 - gold[24:36]
    found = find_gaps({"mood": predictions(gold, predicted, groups)}, ["variety"])
    (gap,) = [gap for gap in found.gaps if gap.measure == "macro_f1"]
    assert gap.difference == pytest.approx(0.03)
    assert gap.p > 0.3
    assert gap.interval[0] < -0.05 < 0.03 < gap.interval[1]
    assert gap.power < 0.5
    (share,) = [gap for gap in found.gaps if gap.measure == "accuracy"]
    assert gap.p == pytest.approx(share.p, abs=0.1)  # both labels are as common and as hard


def test_chance_alone_gives_the_calibration_error_of_a_calibrated_model() -> None:
    generator = np.random.default_rng(4)
    confidence = generator.uniform(0.5, 1, size=100)
    right = generator.random((300, 100)) < confidence
    error = 0.0
    for low in np.arange(0.5, 1, 0.1):
        inside = (confidence >= low) & (confidence < low + 0.1)
        error += np.abs((right - confidence)[:, inside].sum(1)).mean() / 100
    assert ece_by_chance(confidence) == pytest.approx(error, rel=0.1)


def test_what_cannot_be_compared_is_said() -> None:
    generator = np.random.default_rng(5)
    names = ("x", "y", "z", "tiny")
    result = simulated(
        dict(zip(names, (40, 40, 40, 9), strict=True)), dict.fromkeys(names, 0.8), generator
    )
    groups = np.array([example.variety for example in result.examples])
    gold = np.where(groups == "x", 0, result.gold())  # all of one label
    made = {"mood": predictions(gold, result.predicted(), groups)}
    found = find_gaps(made, ["variety"])
    assert {group.name for group in found.groups} == {"x", "y", "z"}
    assert any("tiny: fewer than 10 texts" in note for note in found.notes)
    measures = {gap.measure for gap in found.gaps if gap.name == "x"}
    assert measures == {"accuracy", "recall calm"}
    (spread,) = found.spreads
    assert {spread.worst, spread.best} == {"y", "z"}
    with pytest.raises(UserError, match="no two groups"):
        find_gaps(made, ["source"])
    with pytest.raises(UserError, match="answered with a number"):
        find_gaps({"score": TaskPredictions(Task("score", ()), (), (), (), ())}, ["source"])
    with pytest.raises(UserError, match="no column 'varieti'"):
        check_columns("source,varieti")


@pytest.mark.slow
def test_the_command_writes_and_prints_gaps_and_slices(
    trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["evaluate", "--model", str(trained_folder), "--data", "sampler", "--device", "cpu"]
    more = ["--by", "variety,source", "--slices", "--out", str(tmp_path)]
    assert main([*options, *more]) == 0
    printed = capsys.readouterr().out
    for said in ("by variety: worst en-", "gap of 5 points", "slices looked at"):
        assert said in printed
    content = json.loads((tmp_path / "scores.json").read_text())
    assert {group["column"] for group in content["gaps"]["groups"]} == {"variety", "source"}
    assert content["slices"] == json.loads((tmp_path / "slices.json").read_text())
    assert set(content["slices"]["n_candidates"]) == {"sentiment", "sarcasm"}
    assert {"slices.svg", "slices.html"} <= {path.name for path in tmp_path.iterdir()}
    assert main([*options, "--by", "colour"]) == 2
