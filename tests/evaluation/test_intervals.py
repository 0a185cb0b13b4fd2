"""Intervals over few seeds cover the truth, in a world where texts, seeds and their meetings all
have luck.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.metrics import f1_score

from litotes.core.numbers import confusion, macro_f1
from litotes.evaluation.scores import f1_interval
from litotes.evaluation.significance import (
    find_patterns,
    mean_interval,
    scores_of,
    seed_margin,
    split_draws,
    text_bootstrap,
    widen_interval,
)

Array = np.ndarray[Any, Any]
RATE = 0.35


def recalls(generator: np.random.Generator, n_seeds: int) -> Array:
    """How often each class is found varies from seed to seed. (seed, class)"""
    return np.clip([0.85, 0.65] + 0.06 * generator.normal(size=(n_seeds, 2)), 0.02, 0.98)


def true_score(recall: Array) -> Array:
    """Macro-F1 on endlessly many texts. (…, class) → (…)"""
    share = np.array([1 - RATE, RATE])
    right = share * recall
    wrong = share - right
    return macro_f1(
        np.stack(
            [
                np.stack([right[..., 0], wrong[..., 0]], -1),
                np.stack([wrong[..., 1], right[..., 1]], -1),
            ],
            -2,
        )
    )


def answers(generator: np.random.Generator, n: int, n_seeds: int) -> tuple[Array, Array]:
    """gold (text,), predicted (seed, text); a hard text is hard for every seed."""
    gold = (generator.random(n) < RATE).astype(np.int64)
    luck = np.sqrt(0.5) * generator.normal(size=n) + np.sqrt(0.5) * generator.normal(
        size=(n_seeds, n)
    )
    right = luck < ndtri(recalls(generator, n_seeds)[:, gold])
    return gold, np.where(right, gold, 1 - gold)


@pytest.mark.slow
@pytest.mark.parametrize("n_seeds", [2, 3, 5])
def test_interval_covers_the_mean_over_all_seeds(n_seeds: int) -> None:
    generator = np.random.default_rng(n_seeds)
    truth = true_score(recalls(generator, 100_000)).mean()
    intervals = [
        mean_interval(*answers(generator, 500, n_seeds), 2, seed=trial) for trial in range(150)
    ]
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert 0.92 <= covered <= 0.995  # drawing two or three seeds with replacement: 0.84 and 0.90


def test_interval_over_seeds_is_wider_than_over_texts() -> None:
    generator = np.random.default_rng(3)
    gold = generator.integers(0, 2, 300)
    good = np.where(generator.random(300) < 0.9, gold, 1 - gold)
    poor = np.where(generator.random(300) < 0.6, gold, 1 - gold)
    alike = mean_interval(gold, np.stack([good, good]), 2, seed=0)
    apart = mean_interval(gold, np.stack([good, poor]), 2, seed=0)
    assert apart[1] - apart[0] > 2 * (alike[1] - alike[0])
    assert apart == (0.0, 1.0)  # two seeds so far apart say nothing, and nothing lies outside
    assert alike == pytest.approx(mean_interval(gold, good[None], 2, seed=0))


def test_one_seed_is_the_plain_bootstrap() -> None:
    generator = np.random.default_rng(4)
    gold = generator.integers(0, 2, 150)
    predicted = np.where(generator.random(150) < 0.7, gold, 1 - gold)
    one = mean_interval(gold, predicted[None], 2, seed=0)
    assert one == pytest.approx(f1_interval(confusion(gold, predicted, 2), seed=0), abs=0.02)


def test_losing_a_rare_class_is_no_gain() -> None:
    gold = np.array([0] * 98 + [1] * 2)
    assert mean_interval(gold, np.zeros((3, 100), dtype=np.int64), 2, seed=0)[1] <= 0.5


def test_bootstrap_of_patterns_equals_the_bootstrap_of_texts() -> None:
    generator = np.random.default_rng(5)
    gold = generator.integers(0, 3, 120)
    predicted = np.where(generator.random((2, 120)) < 0.7, gold, generator.integers(0, 3, (2, 120)))
    found = find_patterns(gold, predicted, 3)
    assert scores_of(found) == pytest.approx(
        [f1_score(gold, row, average="macro") for row in predicted]
    )
    fast = text_bootstrap(found, seed=0)
    places = generator.integers(0, 120, size=(2000, 120))
    slow = np.array(
        [[macro_f1(confusion(gold[p], row[p], 3)) for row in predicted] for p in places]
    )
    assert fast.mean(1).std() == pytest.approx(slow.mean(1).std(), rel=0.08)
    # texts are drawn for both models at once
    assert np.cov(fast.T) == pytest.approx(np.cov(slow.T), abs=2e-4)


def test_margin_of_seeds_by_hand() -> None:
    assert seed_margin(np.array([0.6, 0.7])) == pytest.approx(12.706 * 0.05, rel=1e-3)
    assert seed_margin(np.array([0.6, 0.7, 0.8])) == pytest.approx(
        4.3027 * 0.1 / np.sqrt(3), rel=1e-3
    )
    assert seed_margin(np.array([0.6])) == 0.0
    assert seed_margin(np.array([0.6, 0.6, 0.6])) == pytest.approx(0, abs=1e-12)
    # Welch: equal variances and numbers, so 1 + 1 degrees of freedom
    two = np.array([0.6, 0.7]), np.array([0.5, 0.6])
    assert seed_margin(*two) == pytest.approx(4.3027 * np.sqrt(2) * 0.05, rel=1e-3)
    assert seed_margin(two[0], np.array([0.1])) == pytest.approx(seed_margin(two[0]))


def test_each_side_keeps_its_length() -> None:
    assert widen_interval(0.5, (0.46, 0.53), 0.0, within=(0.0, 1.0)) == pytest.approx((0.46, 0.53))
    assert widen_interval(0.5, (0.46, 0.53), 0.04, within=(0.0, 1.0)) == pytest.approx(
        (0.5 - np.hypot(0.04, 0.04), 0.55)
    )
    # the value itself is never outside
    assert widen_interval(0.9, (0.91, 0.95), 0.0, within=(0.0, 1.0)) == pytest.approx((0.9, 0.95))


def test_many_patterns_are_drawn_in_parts() -> None:
    assert list(split_draws(10, 1_500_000)) == [2, 2, 2, 2, 2]
    assert sum(split_draws(2000, 7777)) == 2000
    assert list(split_draws(3, 10**9)) == [1, 1, 1]


def test_seeds_without_a_mistake_have_an_interval_too() -> None:
    gold = np.array([0, 1] * 20)
    low, high = mean_interval(gold, np.stack([gold, gold, gold]), 2, seed=0)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 40)), 1.0)
