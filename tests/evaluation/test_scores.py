"""Scores equal scikit-learn's on whatever comes; intervals cover what they should."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn import metrics

from litotes.core.numbers import macro_f1
from litotes.core.values import Task
from litotes.evaluation.scores import f1_interval, score, score_regression, score_several

THREE = Task("sentiment", ("negative", "neutral", "positive"))
TWO = Task("sarcasm", ("literal", "sarcastic"))


@pytest.mark.parametrize("seed", range(8))
def test_scores_equal_scikit_learn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, n_labels = int(generator.integers(2, 40)), 2 + seed % 2
    gold, predicted = generator.integers(0, n_labels, n), generator.integers(0, 1 + seed % 3, n)
    ours = score(gold, predicted, THREE)
    macro = metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    assert ours.macro_f1 == pytest.approx(macro)
    assert ours.accuracy == pytest.approx(metrics.accuracy_score(gold, predicted))
    if len(set(predicted.tolist())) > 1:  # elsewhere scikit-learn warns
        assert ours.matthews == pytest.approx(metrics.matthews_corrcoef(gold, predicted))
    sides = metrics.precision_recall_fscore_support(
        gold, predicted, labels=[0, 1, 2], zero_division=0
    )
    found = [(one.precision, one.recall, one.f1, one.n) for one in ours.classes]
    assert np.array(found) == pytest.approx(np.transpose(sides))
    constant = np.full(n, np.bincount(gold).argmax())
    assert ours.majority == pytest.approx(
        metrics.f1_score(gold, constant, average="macro", zero_division=0)
    )


def test_a_collapsed_model_is_told_from_a_good_one() -> None:
    assert score([0, 0, 1], [0, 0, 0], TWO).collapsed_to == "literal"
    assert score([0, 0, 1], [0, 0, 0], TWO).matthews == 0.0
    assert score([0, 0, 1], [0, 0, 1], TWO).collapsed_to is None
    assert score([0, 0, 0], [0, 0, 0], TWO).collapsed_to is None  # one class is all there is


def test_interval_covers_the_truth_about_95_times_in_100() -> None:
    generator = np.random.default_rng(2)
    truth = float(macro_f1(np.array([[40, 10], [10, 40]])))
    covered = 0
    for trial in range(200):
        counts = generator.multinomial(200, np.array([0.4, 0.1, 0.1, 0.4])).reshape(2, 2)
        low, high = f1_interval(counts, seed=trial)
        covered += low <= truth <= high
    assert 0.90 <= covered / 200 <= 0.99


def test_regression_equals_numpy_and_ranks() -> None:
    gold, predicted = np.array([1.0, 2.0, 2.0, 4.0, 5.0]), np.array([1.5, 1.0, 2.5, 3.5, 6.0])
    scores = score_regression(gold, predicted, Task("similarity", ()))
    assert scores.pearson == pytest.approx(np.corrcoef(gold, predicted)[0, 1])
    assert scores.spearman == pytest.approx(np.corrcoef([1, 2.5, 2.5, 4, 5], [2, 1, 3, 4, 5])[0, 1])
    assert scores.root_mean_squared_error == pytest.approx(
        np.sqrt(np.mean((gold - predicted) ** 2))
    )
    assert score_regression(gold, np.ones(5), Task("similarity", ())).pearson == 0.0
    # whose mean is not 0.1, nor 0.7, to the last bit
    same = np.full(3, 0.1), np.full(3, 0.7)
    assert score_regression(*same, Task("similarity", ())).pearson == 0.0


def test_no_mistake_among_few_texts_does_not_prove_that_there_are_none() -> None:
    """Resampling 30 right answers gives 1 every time; a model right in 97 of 100 often gives 30."""
    low, high = score([0, 1] * 15, [0, 1] * 15, TWO).interval
    assert high == 1.0
    # Clopper and Pearson: 30 of 30 are seen with a chance of 2.5 % if 0.116 are wrong
    assert low == pytest.approx(0.025 ** (1 / 30), abs=1e-9)
    low, high = score([0, 1] * 15, [1, 0] * 15, TWO).interval
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 30)))
    generator, covered = np.random.default_rng(5), 0
    for trial in range(100):
        counts = generator.multinomial(30, [0.485, 0.015, 0.015, 0.485])
        gold, predicted = (np.repeat(side, counts) for side in ([0, 0, 1, 1], [0, 1, 0, 1]))
        low, high = score(gold, predicted, TWO, seed=trial).interval
        covered += low <= 0.97 <= high
    assert covered >= 90


def test_several_labels_equal_scikit_learn() -> None:
    generator = np.random.default_rng(6)
    task = Task("moods", ("angry", "calm", "glad", "never"), multi_label=True)
    gold = generator.random((80, 4)) < [0.2, 0.5, 0.3, 0.0]
    given = np.where(generator.random((80, 4)) < 0.85, gold, ~gold) & [True, True, True, False]
    found = score_several(gold, given, task, seed=1)
    # a label that neither occurs nor is given counts for nothing
    macro = partial(metrics.f1_score, average="macro", labels=[0, 1, 2], zero_division=0)
    assert found.macro_f1 == pytest.approx(macro(gold, given))
    assert found.micro_f1 == pytest.approx(metrics.f1_score(gold, given, average="micro"))
    assert found.subset_accuracy == pytest.approx(metrics.accuracy_score(gold, given))
    sides = metrics.precision_recall_fscore_support(gold, given, zero_division=0)
    ours = [(one.precision, one.recall, one.f1, one.n) for one in found.classes]
    assert np.array(ours) == pytest.approx(np.transpose(sides))
    sets, counts = np.unique(gold, axis=0, return_counts=True)
    constant = np.tile(sets[counts.argmax()], (80, 1))
    present = [number for number in (0, 1, 2) if (gold | constant)[:, number].any()]
    expected = metrics.f1_score(gold, constant, average="macro", labels=present, zero_division=0)
    assert found.majority == pytest.approx(expected)
    slow = []
    for places in generator.integers(0, 80, (1000, 80)):
        hits, seen = gold[places] & given[places], gold[places].sum(0) + given[places].sum(0)
        by_label = 2 * hits.sum(0)[:3] / seen[:3]
        slow.append((by_label.mean(), 2 * hits.sum() / seen.sum()))
    low, high = np.quantile(slow, [0.025, 0.975], axis=0)
    assert found.interval == pytest.approx((low[0], high[0]), abs=0.02)
    assert found.micro_interval == pytest.approx((low[1], high[1]), abs=0.02)
    # of equally common sets the one with the fewest labels, then with the first of them
    tied = np.array([[0, 0, 1], [1, 1, 0], [1, 0, 0]] * 4, dtype=bool)
    three = Task("moods", ("a", "b", "c"), multi_label=True)
    found = score_several(tied, tied, three)
    constant = np.tile(tied[2], (12, 1))
    assert found.majority == pytest.approx(macro(tied, constant))
    assert found.interval == (pytest.approx(0.025 ** (1 / 12)), 1.0)


def test_what_30_texts_do_not_show_is_by_hand_for_three_classes() -> None:
    share = 1 - 0.025 ** (1 / 30)
    gold = [0, 1, 2] * 10
    low, _ = score(gold, gold, THREE).interval
    # each label loses `share` of its ten texts, and gains half of it from either other one
    assert low == pytest.approx(2 * 10 * (1 - share) / (2 * 10))
    _, high = score(gold, [1, 2, 0] * 10, THREE).interval
    assert high == pytest.approx(share)
