"""p is what it says, exact where every swap can be tried; intervals hold texts and seeds."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from litotes.core.numbers import confusion, macro_f1
from litotes.evaluation.significance import (
    difference,
    draw_texts,
    estimate_mean,
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


def gap(gold: Array, a: Array, b: Array) -> float:
    means = [np.mean([macro_f1(confusion(gold, row, 3)) for row in rows]) for rows in (a, b)]
    return float(means[0] - means[1])


def test_p_and_difference_are_the_same_from_the_other_side() -> None:
    generator = np.random.default_rng(2)
    gold = generator.integers(0, 2, 80)
    a, b = (np.where(generator.random((n, 80)) < 0.75, gold, 1 - gold) for n in (3, 2))
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
    a, b = (
        np.where(generator.random((n_seeds, 9)) < share, gold, generator.integers(0, n_classes, 9))
        for share in (0.9, 0.4)
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


@pytest.mark.parametrize(("n", "n_a", "n_b"), [(1, 1, 1), (7, 2, 3), (25, 3, 1)])
def test_the_difference_is_that_of_scikit_learn(n: int, n_a: int, n_b: int) -> None:
    generator = np.random.default_rng(n)
    gold, a, b = (generator.integers(0, 3, size) for size in (n, (n_a, n), (n_b, n)))
    result = difference(gold, a, b, 3, n_permutations=20)
    scores = [
        np.mean([f1_score(gold, row, average="macro", zero_division=0) for row in rows])
        for rows in (a, b)
    ]
    assert result.difference == pytest.approx(scores[0] - scores[1])
    assert -1 <= result.interval[0] <= result.difference <= result.interval[1] <= 1
    assert (result.n, result.n_seeds) == (n, (n_a, n_b))


def test_holm_by_hand_and_by_its_steps() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.6, 0.7]) == (1.0, 1.0)
    assert holm([]) == ()
    generator = np.random.default_rng(0)
    for n in range(1, 13):
        p, level = (generator.random(n) ** 3).tolist(), float(generator.uniform(0.01, 0.5))
        # from the smallest on; stop at the first that is above level / (number not yet rejected)
        rejected, left = set(), n
        for place in sorted(range(n), key=lambda place: p[place]):
            if p[place] * left > level:
                break
            rejected.add(place)
            left -= 1
        assert {place for place, own in enumerate(holm(p)) if own <= level} == rejected


def test_equal_answers_to_few_texts_do_not_prove_equal_systems() -> None:
    gold = np.array([0, 1] * 20)
    given = np.where(np.arange(40) < 32, gold, 1 - gold)[None]
    found = difference(gold, given, given, 2)
    assert (found.difference, found.p) == (0.0, 1.0)
    low, high = found.interval
    assert low == -high
    # of 40 texts none differs with a chance of 2.5 % if 0.088 do, all of them for the worse
    assert high == pytest.approx(0.8 * (1 - 0.025 ** (1 / 40)), abs=1e-9)


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
    # the value itself is never outside, nor is what is impossible inside
    assert widen_interval(0.9, (0.91, 0.95), 0.0, within=(0.0, 1.0)) == pytest.approx((0.9, 0.95))
    assert widen_interval(0.9, (0.1, 0.95), 0.9, within=(0.0, 1.0)) == (0.0, 1.0)
    by_seed = np.array([0.6, 0.7])
    found = estimate_mean(by_seed, (0.62, 0.68))
    assert found.value == pytest.approx(0.65)
    assert found.interval == (pytest.approx(0.65 - np.hypot(0.03, 12.706 * 0.05), rel=1e-3), 1.0)


def test_what_is_drawn_in_parts_is_drawn_once() -> None:
    assert list(split_draws(10, 1_500_000)) == [2, 2, 2, 2, 2]
    assert list(split_draws(3, 10**9)) == [1, 1, 1]
    drawn = np.concatenate(list(draw_texts(5000, np.random.default_rng(0))))
    assert drawn.shape == (2000, 5000)
    assert set(drawn.sum(1).tolist()) == {5000}
    assert drawn.var() == pytest.approx(1.0, rel=0.01)  # Poisson's, nearly


def test_seeds_without_a_mistake_have_an_interval_too() -> None:
    gold = np.array([0, 1] * 20)
    low, high = mean_interval(gold, np.stack([gold, gold, gold]), 2, seed=0)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 40)), 1.0)
