"""Statistics of pairs: a text under a rewrite and under its control.

All intervals are of 95 %. Texts are taken as independent draws.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from litotes.core.numbers import Floats
from litotes.evaluation.reliability import wilson
from litotes.evaluation.scores import N_RESAMPLES, interval

Bools = NDArray[np.bool_]

N_SIGNS = 20_000
"""Draws of the permutation test: p may be as small as 1 / 20,001, and stays so corrected."""

_ROUNDING = 1e-12


def mcnemar(first: Bools, second: Bools) -> float:
    """Two-sided p of the exact test of McNemar (1947): does one happen more often than the other?

    b texts have the first alone, c the second alone; under the null b is binomial(b + c, 1/2).
    first, second (text,)
    """
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    if b + c == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(b, c), b + c, 0.5)))


def difference_interval(first: Bools, second: Bools) -> tuple[float, float]:
    """Of the difference of two shares on the same texts: Newcombe (1998), method 10.

    Wilson's intervals of both shares, joined with the correlation φ of the pairs:

        low  = d − √(l₁² − 2 φ l₁ u₂ + u₂²),    l = share − low, u = high − share
        high = d + √(u₁² − 2 φ u₁ l₂ + l₂²)

    first, second (text,)
    """
    n = len(first)
    share_1, share_2 = float(first.mean()), float(second.mean())
    (low_1, high_1), (low_2, high_2) = wilson(share_1, n), wilson(share_2, n)
    phi = _phi(first, second)
    below_1, above_1 = share_1 - low_1, high_1 - share_1
    below_2, above_2 = share_2 - low_2, high_2 - share_2
    d = share_1 - share_2
    low = sqrt(max(below_1**2 - 2 * phi * below_1 * above_2 + above_2**2, 0.0))
    high = sqrt(max(above_1**2 - 2 * phi * above_1 * below_2 + below_2**2, 0.0))
    return max(d - low, -1.0), min(d + high, 1.0)


def _phi(first: Bools, second: Bools) -> float:
    """The correlation of two answers of yes and no; 0 where one of them never changes.

    A positive one is taken a little smaller, as if half a pair were the other way round.
    """
    n = len(first)
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    only_1, only_2 = int((first & ~second).sum()), int((second & ~first).sum())
    sides = (both + only_1) * (only_2 + neither) * (both + only_2) * (only_1 + neither)
    if sides == 0:
        return 0.0
    product = both * neither - only_1 * only_2
    if product < 0:
        return product / sqrt(sides)
    return max(product - n / 2, 0.0) / sqrt(sides)


def mean_interval(values: Floats, *, seed: int) -> tuple[float, float]:
    """Of a mean, by drawing texts with replacement. values (text,)"""
    draws = np.random.default_rng(seed).integers(0, len(values), (N_RESAMPLES, len(values)))
    return interval(values[draws].mean(1))


def sign_test(differences: Floats, *, seed: int) -> float:
    """Two-sided p of the paired permutation test: is the mean of the differences other than 0?

        p = (1 + #{|mean of ± d| ≥ |mean of d|}) / (1 + draws)

    Null: for every text it is a coin's toss which of its two values came from which rewrite.
    differences (text,)
    """
    generator = np.random.default_rng(seed)
    observed = abs(float(differences.sum())) - _ROUNDING
    n_as_large, n_left = 0, N_SIGNS
    while n_left:
        size = min(n_left, max(1, 2_000_000 // len(differences)))
        signs = generator.integers(0, 2, (size, len(differences)), dtype=np.int8)
        sums = 2 * (signs @ differences) - differences.sum()  # (draw,)
        n_as_large += int((np.abs(sums) >= observed).sum())
        n_left -= size
    return (1 + n_as_large) / (1 + N_SIGNS)


def clustered_interval(sums: Floats, counts: Floats, *, seed: int) -> tuple[float, float]:
    """Of a mean over answers that come in texts: whole texts are drawn with replacement.

    sums, counts (text,): of the answers of each text
    """
    draws = np.random.default_rng(seed).integers(0, len(sums), (N_RESAMPLES, len(sums)))
    return interval(sums[draws].sum(1) / counts[draws].sum(1))
