"""p is what it says: uniform when nothing differs, small when something does, exact where every
swap can be tried.
"""

from __future__ import annotations

import json
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
from litotes.evaluation.significance import difference, holm, permutation_test

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


def test_a_system_does_not_differ_from_itself() -> None:
    generator = np.random.default_rng(3)
    gold = generator.integers(0, 3, 50)
    a = generator.integers(0, 3, (2, 50))
    assert permutation_test(gold, a, a, 3) == 1.0
    result = difference(gold, a, a, 3)
    assert result.difference == 0.0
    assert result.interval[0] <= 0.0 <= result.interval[1]


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


def test_json_is_plain() -> None:
    gold = np.array([0, 1, 1, 0])
    result = difference(gold, gold[None], 1 - gold[None], 2, n_permutations=10)
    assert json.loads(json.dumps(result.as_json()))["difference"] == 1.0


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
