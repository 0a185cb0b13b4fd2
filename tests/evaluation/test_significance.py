"""p is what it says, exact where every swap can be tried; intervals over few seeds cover the truth,
in a world where texts, seeds and their meetings all have luck.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import kstest
from sklearn.metrics import f1_score

from litotes.core.numbers import confusion, macro_f1
from litotes.evaluation.scores import f1_interval
from litotes.evaluation.significance import (
    difference,
    find_patterns,
    holm,
    mean_interval,
    permutation_test,
    scores_of,
    seed_margin,
    split_draws,
    text_bootstrap,
    widen_interval,
)

Array = np.ndarray[Any, Any]


def texts(generator: np.random.Generator, n: int) -> tuple[Array, Array]:
    """gold (text,) and how hard each text is (text,)."""
    return (generator.random(n) < 0.4).astype(np.int64), generator.normal(size=n)


def system(
    generator: np.random.Generator, gold: Array, hardness: Array, n_seeds: int, accuracy: float
) -> Array:
    """Answers of a system that is right this often. (seed, text)"""
    luck = np.sqrt(0.5) * hardness + np.sqrt(0.5) * generator.normal(size=(n_seeds, len(gold)))
    return np.where(luck < ndtri(accuracy), gold, 1 - gold)


def sklearn_gap(gold: Array, a: Array, b: Array) -> float:
    means = [
        np.mean([f1_score(gold, row, average="macro", zero_division=0) for row in rows])
        for rows in (a, b)
    ]
    return float(means[0] - means[1])


def gap(gold: Array, a: Array, b: Array) -> float:
    """The same, quicker."""
    means = [np.mean([macro_f1(confusion(gold, row, 3)) for row in rows]) for rows in (a, b)]
    return float(means[0] - means[1])


@pytest.mark.slow
@pytest.mark.parametrize(("n_a", "n_b"), [(3, 3), (3, 1)])
def test_p_is_uniform_when_nothing_differs(n_a: int, n_b: int) -> None:
    generator = np.random.default_rng(10 * n_a + n_b)
    found = []
    for trial in range(250):
        gold, hardness = texts(generator, 200)
        a, b = (system(generator, gold, hardness, n, 0.75) for n in (n_a, n_b))
        found.append(permutation_test(gold, a, b, 2, n_permutations=199, seed=trial))
    assert kstest(found, "uniform").pvalue > 0.05
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.09


def test_a_planted_difference_is_found() -> None:
    generator = np.random.default_rng(1)
    gold, hardness = texts(generator, 500)
    a, b = (system(generator, gold, hardness, 3, accuracy) for accuracy in (0.85, 0.75))
    result = difference(gold, a, b, 2)
    assert result.p < 0.001
    assert 0 < result.interval[0] < result.difference < result.interval[1]


def test_p_and_difference_are_the_same_from_the_other_side() -> None:
    generator = np.random.default_rng(2)
    gold, hardness = texts(generator, 80)
    a, b = system(generator, gold, hardness, 3, 0.8), system(generator, gold, hardness, 2, 0.72)
    assert permutation_test(gold, a, b, 2) == permutation_test(gold, b, a, 2)
    one, other = difference(gold, a, b, 2), difference(gold, b, a, 2)
    assert one.difference == -other.difference
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=0.01)
    shuffled = generator.permutation(80)
    assert permutation_test(gold[shuffled], a[:, shuffled], b[:, shuffled], 2) == permutation_test(
        gold, a, b, 2
    )


@pytest.mark.parametrize(("n_classes", "n_seeds"), [(2, 1), (2, 3), (3, 2)])
def test_p_equals_trying_every_swap(n_classes: int, n_seeds: int) -> None:
    generator = np.random.default_rng(4)
    gold = generator.integers(0, n_classes, 9)
    a = np.where(
        generator.random((n_seeds, 9)) < 0.9, gold, generator.integers(0, n_classes, (n_seeds, 9))
    )
    b = np.where(
        generator.random((n_seeds, 9)) < 0.4, gold, generator.integers(0, n_classes, (n_seeds, 9))
    )
    observed = abs(gap(gold, a, b)) - 1e-12
    # swapping all texts only turns the sign: half of them will do
    swaps = np.array(list(product([False, True], repeat=8)))
    swaps = np.column_stack([swaps, np.zeros(len(swaps), dtype=bool)])
    exact = np.mean(
        [abs(gap(gold, np.where(swap, b, a), np.where(swap, a, b))) >= observed for swap in swaps]
    )
    assert 0.001 < exact < 0.9  # or there is nothing to see
    assert permutation_test(gold, a, b, n_classes) == pytest.approx(
        exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000) + 2e-4
    )


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 3), st.integers(1, 3))
def test_the_difference_is_that_of_scikit_learn(seed: int, n: int, n_a: int, n_b: int) -> None:
    generator = np.random.default_rng(seed)
    gold, a, b = (
        generator.integers(0, 3, n),
        generator.integers(0, 3, (n_a, n)),
        generator.integers(0, 3, (n_b, n)),
    )
    result = difference(gold, a, b, 3, n_permutations=20)
    assert result.difference == pytest.approx(sklearn_gap(gold, a, b))
    assert result.difference == pytest.approx(gap(gold, a, b))
    assert -1 <= result.interval[0] <= result.difference <= result.interval[1] <= 1
    assert (result.n, result.n_seeds) == (n, (n_a, n_b))


@pytest.mark.slow
def test_interval_of_a_difference_covers_none_between_two_draws_of_seeds() -> None:
    """The systems are one and the same recipe, but their seeds differ: p (seeds as given) is often
    small, the interval is not fooled.
    """
    generator = np.random.default_rng(5)
    results = []
    for trial in range(100):
        gold, hardness = texts(generator, 300)
        a, b = (
            np.vstack(
                [
                    system(
                        generator,
                        gold,
                        hardness,
                        1,
                        np.clip(0.78 + 0.05 * generator.normal(), 0.5, 0.98),
                    )
                    for _ in range(3)
                ]
            )
            for _ in range(2)
        )
        results.append(difference(gold, a, b, 2, n_permutations=99, seed=trial))
    assert 0.92 <= np.mean([one.interval[0] <= 0 <= one.interval[1] for one in results]) <= 1.0
    assert np.mean([one.p <= 0.05 for one in results]) > 0.2


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.6, 0.7]) == (1.0, 1.0)
    assert holm([0.02]) == (0.02,)
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.999))
def test_holm_rejects_what_its_steps_reject(p_values: list[float], level: float) -> None:
    """Holm's own words: go from the smallest on; stop at the first that is above level / (number
    not yet rejected).
    """
    adjusted = holm(p_values)
    rejected, left = set(), len(p_values)
    for place in sorted(range(len(p_values)), key=lambda place: p_values[place]):
        if p_values[place] * left > level:
            break
        rejected.add(place)
        left -= 1
    assert {place for place, p in enumerate(adjusted) if p <= level} == rejected
    assert all(before <= after <= 1 for before, after in zip(p_values, adjusted, strict=True))


def test_equal_answers_to_few_texts_do_not_prove_equal_systems() -> None:
    gold = np.array([0, 1] * 20)
    given = np.where(np.arange(40) < 32, gold, 1 - gold)[None]
    found = difference(gold, given, given, 2)
    assert (found.difference, found.p) == (0.0, 1.0)
    low, high = found.interval
    assert low == -high
    # of 40 texts none differs with a chance of 2.5 % if 0.088 do, all of them for the worse
    assert high == pytest.approx(0.8 * (1 - 0.025 ** (1 / 40)), abs=1e-9)


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
