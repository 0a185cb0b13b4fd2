"""Gaps between groups: intervals and tests keep what they promise in simulations, power is the
chance to find the gap, and scores are those of outside libraries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, recall_score

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.numbers import macro_f1
from litotes.core.values import Answer, Example, Task
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.gaps import (
    check_columns,
    cohen_kappa,
    find_gaps,
)
from litotes.evaluation.reliability import ece_by_chance
from litotes.evaluation.shares import normal_power, share_interval, share_power, share_test

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
    assert {gap.name for gap in found.gaps} == {"x"}  # y is the same with another sign
    gaps = {gap.measure: gap for gap in found.gaps}
    assert set(gaps) == {"macro_f1", "accuracy", "recall calm", "recall angry"}
    accuracies = [group.accuracy for group in found.groups]
    assert gaps["accuracy"].difference == pytest.approx(accuracies[0] - accuracies[1])
    assert gaps["accuracy"].is_significant
    assert all(gap.adjusted_p >= gap.p for gap in found.gaps)
    (spread,) = found.spreads
    assert (spread.worst, spread.best) == ("x", "y")
    assert spread.spread > spread.spread_by_chance
    assert spread.spread_p < 0.05


def test_the_test_of_two_shares_is_that_of_scipy() -> None:
    table = [[30, 20], [45, 15]]
    expected = chi2_contingency(table, correction=False).pvalue
    assert share_test(30 / 50, 50, 45 / 60, 60) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("share", "sizes"), [(0.8, (200, 600)), (0.5, (80, 80)), (0.95, (150, 300))]
)
def test_power_is_how_often_the_gap_is_found(share: float, sizes: tuple[int, int]) -> None:
    generator = np.random.default_rng(1)
    n_a, n_b = sizes
    hits_a = generator.binomial(n_a, share - 0.05, size=3000) / n_a
    hits_b = generator.binomial(n_b, share, size=3000) / n_b
    pairs = list(zip(hits_a.tolist(), hits_b.tolist(), strict=True))
    found = np.mean([share_test(a, n_a, b, n_b) < 0.05 for a, b in pairs])
    assert share_power(share, n_a, n_b, 0.05) == pytest.approx(found, abs=0.04)
    holds = [
        low <= -0.05 <= high for low, high in (share_interval(a, n_a, b, n_b) for a, b in pairs)
    ]
    assert np.mean(holds) == pytest.approx(0.95, abs=0.02)


def test_the_test_of_macro_f1_errs_as_often_as_it_says() -> None:
    """And finds a gap as often as its power promises."""
    generator = np.random.default_rng(2)
    right = np.array([[0.48, 0.12], [0.08, 0.32]])  # (gold, predicted)
    wrong = np.array([[0.40, 0.20], [0.14, 0.26]])
    n_found, powers = {"same": 0, "other": 0}, []
    for _ in range(250):
        a, b = generator.multinomial(300, right.ravel(), size=2).reshape(2, 2, 2)
        c = generator.multinomial(300, wrong.ravel()).reshape(2, 2)
        draws = [
            macro_f1(generator.multinomial(300, one.ravel() / 300, 200).reshape(-1, 2, 2))
            for one in (a, b, c)
        ]
        scores = [draw.mean() for draw in draws]
        for name, other in (("same", 1), ("other", 2)):
            error = np.hypot(draws[0].std(), draws[other].std())
            n_found[name] += abs(scores[0] - scores[other]) / error > 1.96
        powers.append(normal_power(float(error), 0.1407))  # the true gap of macro-F1
    assert n_found["same"] / 250 == pytest.approx(0.05, abs=0.04)
    assert n_found["other"] / 250 == pytest.approx(np.mean(powers), abs=0.06)


def test_a_gap_that_is_not_there_is_seldom_found() -> None:
    generator, n_found = np.random.default_rng(3), 0
    for seed in range(12):
        result = simulated({"x": 60, "y": 60, "z": 60}, dict.fromkeys("xyz", 0.8), generator)
        found = find_gaps({"mood": result}, ["variety"], seed=seed)
        assert len(found.gaps) == 12
        n_found += any(gap.is_significant for gap in found.gaps)
    assert n_found <= 3


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
    drawn = []
    for _ in range(300):
        right, error = generator.random(100) < confidence, 0.0
        for low in np.arange(0.5, 1, 0.1):
            inside = (confidence >= low) & (confidence < low + 0.1)
            error += abs(right[inside].sum() - confidence[inside].sum()) / 100
        drawn.append(error)
    assert ece_by_chance(confidence) == pytest.approx(np.mean(drawn), rel=0.1)


def test_what_cannot_be_compared_is_said() -> None:
    generator = np.random.default_rng(5)
    result = simulated(
        {"x": 40, "y": 40, "tiny": 4}, dict.fromkeys(("x", "y", "tiny"), 0.8), generator
    )
    found = find_gaps({"mood": result}, ["variety"])
    assert {group.name for group in found.groups} == {"x", "y"}
    assert any("tiny: fewer than 10 texts" in note for note in found.notes)
    with pytest.raises(UserError, match="no two groups"):
        find_gaps({"mood": result}, ["source"])
    with pytest.raises(UserError, match="no column 'varieti'"):
        check_columns("source,varieti")


def test_a_group_without_a_label_has_no_macro_f1_to_compare() -> None:
    generator = np.random.default_rng(6)
    result = simulated({"x": 60, "y": 60, "z": 60}, dict.fromkeys("xyz", 0.8), generator)
    gold = np.where([example.variety == "x" for example in result.examples], 0, result.gold())
    groups = np.array([example.variety for example in result.examples])
    found = find_gaps({"mood": predictions(gold, result.predicted(), groups)}, ["variety"])
    measures = {gap.measure for gap in found.gaps if gap.name == "x"}
    assert measures == {"accuracy", "recall calm"}
    (spread,) = found.spreads
    assert {spread.worst, spread.best} == {"y", "z"}


def test_kappa_of_a_constant_is_nothing() -> None:
    assert cohen_kappa(np.array([[5.0, 0.0], [0.0, 0.0]])) == 0


@pytest.mark.slow
def test_the_command_writes_and_prints_gaps(
    trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["evaluate", "--model", str(trained_folder), "--data", "sampler", "--device", "cpu"]
    assert main([*options, "--by", "variety,source", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "by variety: worst en-" in printed
    assert "gap of 5 points" in printed
    written = json.loads((tmp_path / "scores.json").read_text())
    assert {group["column"] for group in written["gaps"]["groups"]} == {"variety", "source"}
    assert main([*options, "--by", "colour"]) == 2
