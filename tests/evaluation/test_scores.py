"""Scores equal scikit-learn's on whatever comes; intervals cover what they should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from litotes.core.numbers import confusion, macro_f1
from litotes.core.values import Task
from litotes.evaluation.scores import f1_interval, interval, score, score_regression

THREE = Task("sentiment", ("negative", "neutral", "positive"))
TWO = Task("sarcasm", ("literal", "sarcastic"))

answers = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40)


@pytest.mark.slow
@given(answers)
def test_scores_equal_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = (list(side) for side in zip(*pairs, strict=True))
    ours = score(gold, predicted, THREE)
    assert ours.macro_f1 == pytest.approx(
        metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    )
    assert ours.accuracy == pytest.approx(metrics.accuracy_score(gold, predicted))
    if len(set(gold)) > 1 and len(set(predicted)) > 1:  # elsewhere scikit-learn warns
        assert ours.matthews == pytest.approx(metrics.matthews_corrcoef(gold, predicted))
    precision, recall, f1, n = metrics.precision_recall_fscore_support(
        gold, predicted, labels=[0, 1, 2], zero_division=0
    )
    assert [(c.precision, c.recall, c.f1, c.n) for c in ours.classes] == [
        (pytest.approx(p), pytest.approx(r), pytest.approx(f), s)
        for p, r, f, s in zip(precision, recall, f1, n, strict=True)
    ]


def test_majority_line() -> None:
    gold = [0] * 7 + [1] * 3
    assert score(gold, gold, TWO).majority == pytest.approx(
        metrics.f1_score(gold, [0] * 10, average="macro")
    )


def test_a_collapsed_model_is_told_from_a_good_one() -> None:
    assert score([0, 0, 1], [0, 0, 0], TWO).collapsed_to == "literal"
    assert score([0, 0, 1], [0, 0, 1], TWO).collapsed_to is None
    assert score([0, 0, 0], [0, 0, 0], TWO).collapsed_to is None  # one class is all there is


def test_bootstrap_of_counts_equals_the_bootstrap_of_texts() -> None:
    """The multinomial draw is the same thing as drawing texts, only faster."""
    generator = np.random.default_rng(1)
    gold = generator.integers(0, 2, 120)
    predicted = np.where(generator.random(120) < 0.75, gold, 1 - gold)
    fast = f1_interval(confusion(gold, predicted, 2), seed=0)
    places = generator.integers(0, 120, size=(2000, 120))
    # scikit-learn would take half a minute
    slow = interval(np.array([macro_f1(confusion(gold[p], predicted[p], 2)) for p in places]))
    assert fast == pytest.approx(slow, abs=0.02)


def test_interval_covers_the_truth_about_95_times_in_100() -> None:
    generator = np.random.default_rng(2)
    truth = float(macro_f1(np.array([[40, 10], [10, 40]])))
    covered = 0
    for trial in range(200):
        counts = generator.multinomial(200, np.array([0.4, 0.1, 0.1, 0.4])).reshape(2, 2)
        low, high = f1_interval(counts, seed=trial)
        covered += low <= truth <= high
    assert 0.90 <= covered / 200 <= 0.99


def test_same_bytes_twice() -> None:
    gold, predicted = [0, 1, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 1, 0]
    assert score(gold, predicted, TWO, seed=3) == score(gold, predicted, TWO, seed=3)


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


def test_losing_a_rare_class_is_no_gain() -> None:
    """A resample without the rare class must not score 1 for a model that never finds it."""
    gold = np.array([0] * 98 + [1] * 2)
    constant = np.zeros(100, dtype=np.int64)
    assert score(gold, constant, TWO).interval[1] <= 0.5


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
