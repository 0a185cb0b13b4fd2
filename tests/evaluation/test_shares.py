"""Shares of texts: intervals and tests are those of scipy, and hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, chi2_contingency, fisher_exact, norm

from litotes.evaluation.shares import (
    exact_interval,
    exact_test,
    hybrid_interval,
    mcnemar,
    normal_power,
    paired_interval,
    share_interval,
    share_power,
    share_test,
    two_sided,
    wilson,
)


@pytest.mark.parametrize(("n_hits", "n"), [(0, 7), (3, 7), (7, 7), (95, 100)])
def test_intervals_of_a_share_are_those_of_scipy(n_hits: int, n: int) -> None:
    found = binomtest(n_hits, n)
    exact, by_score = (tuple(found.proportion_ci(method=name)) for name in ("exact", "wilson"))
    assert exact_interval(n_hits, n) == pytest.approx(exact, abs=1e-9)
    assert wilson(n_hits / n, n) == pytest.approx(by_score, abs=1e-6)


CASES = [((3, 15), (20, 500)), ((0, 4), (20, 30)), ((20, 30), (20, 30)), ((7, 0), (9, 9))]


@pytest.mark.parametrize(("hits", "n"), CASES)
def test_tests_of_two_shares_are_those_of_scipy(hits: tuple[int, int], n: tuple[int, int]) -> None:
    """Of 3 of 20 against 15 of 500 z would say 0.001, and chance does it ten times as often."""
    table = [[hits[0], n[0] - hits[0]], [hits[1], n[1] - hits[1]]]
    assert exact_test(hits, n) == pytest.approx(fisher_exact(table, alternative="greater").pvalue)
    if hits != n:
        expected = chi2_contingency(table, correction=False).pvalue
        assert share_test(hits[0] / n[0], n[0], hits[1] / n[1], n[1]) == pytest.approx(expected)


def test_mcnemar_is_the_exact_binomial_test() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        first, second = generator.random((2, 40)) < 0.3
        b, c = int((first & ~second).sum()), int((second & ~first).sum())
        expected = binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
        assert mcnemar(first, second) == pytest.approx(expected)


def test_intervals_of_a_difference_are_newcombes() -> None:
    """Worked examples of the 1998 papers: 36, 12, 2, 0 of 50 pairs; 56 of 70 and 48 of 80."""
    first = np.array([True] * 48 + [False] * 2)
    second = np.array([True] * 36 + [False] * 12 + [True] * 2)
    assert paired_interval(first, second) == pytest.approx((0.0569, 0.3404), abs=5e-4)
    assert share_interval(56 / 70, 70, 48 / 80, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    # of independent estimates the margins add like the sides of a right angle
    assert hybrid_interval(0.5, (0.2, 0.9), 0.4, (0.0, 0.7)) == pytest.approx(
        (0.1 - np.hypot(0.3, 0.3), 0.1 + np.hypot(0.4, 0.4))
    )
    assert hybrid_interval(1.0, (0.0, 1.0), 0.0, (0.0, 1.0)) == (pytest.approx(1 - 2**0.5), 1.0)


def test_the_paired_interval_covers() -> None:
    generator = np.random.default_rng(1)
    truth, n_covered = 0.15 - (0.6 * 0.15 + 0.4 * 0.05), 0
    for _ in range(400):
        first = generator.random(80) < 0.15
        second = np.where(generator.random(80) < 0.6, first, generator.random(80) < 0.05)
        low, high = paired_interval(first, second)
        n_covered += low <= truth <= high
    assert 0.92 <= n_covered / 400 <= 0.99


@pytest.mark.parametrize(
    ("share", "sizes"), [(0.8, (200, 600)), (0.5, (80, 80)), (0.95, (150, 300))]
)
def test_power_is_how_often_the_gap_is_found(share: float, sizes: tuple[int, int]) -> None:
    generator = np.random.default_rng(1)
    n_a, n_b = sizes
    hits_a = generator.binomial(n_a, share - 0.05, size=1500) / n_a
    hits_b = generator.binomial(n_b, share, size=1500) / n_b
    pairs = list(zip(hits_a.tolist(), hits_b.tolist(), strict=True))
    found = np.mean([share_test(a, n_a, b, n_b) < 0.05 for a, b in pairs])
    assert share_power(share, n_a, n_b, 0.05) == pytest.approx(found, abs=0.04)
    ends = [share_interval(a, n_a, b, n_b) for a, b in pairs]
    assert np.mean([low <= -0.05 <= high for low, high in ends]) == pytest.approx(0.95, abs=0.02)


def test_a_known_standard_error_gives_the_normal_test() -> None:
    assert two_sided(0.3, 0.2) == pytest.approx(2 * norm.sf(1.5))
    assert two_sided(-0.3, 0.2) == two_sided(0.3, 0.2)
    assert (two_sided(0.0, 0.0), two_sided(0.1, 0.0)) == (1.0, 0.0)
    z = norm.ppf(0.975)
    assert normal_power(0.02, 0.05) == pytest.approx(norm.cdf(2.5 - z) + norm.cdf(-2.5 - z))
    assert normal_power(0.0, 0.05) == 1.0
    assert share_power(0.02, 100, 100, 0.05) > 0.1  # so much less is impossible, more is not
