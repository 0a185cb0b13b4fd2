"""Shares of texts: their intervals, and tests of whether two of them differ.

wilson     of a share (Wilson 1927)
hybrid     of a difference: Newcombe (1998, method 10). With limits l, u of each share and φ the
           correlation of pairs, 0 for groups that have no text in common,
           a − b − √((a − l_a)² − 2 φ (a − l_a)(u_b − b) + (u_b − b)²)   to
           a − b + √((u_a − a)² − 2 φ (u_a − a)(b − l_b) + (b − l_b)²)
exact      of a share: Clopper & Pearson (1934)
test       z = (a − b) / √(p̄ (1 − p̄) (1/n_a + 1/n_b)), p̄ the share of both groups together
exact test P(X ≥ k_a), X hypergeometric: k_a + k_b hits dealt to n_a + n_b texts (Fisher 1934); for
           few texts or rare hits, where z is no longer normal
McNemar    b texts have the first alone, c the second alone: b is binomial(b + c, 1/2) (1947)
power      Φ((|δ| − z₀.₉₇₅ s₀) / s₁) for a true gap δ, s₀ and s₁ the standard errors of a − b
           without and with the gap
"""

from __future__ import annotations

from math import comb, erfc, sqrt

import numpy as np

from litotes.core.numbers import Counts, Floats
from litotes.evaluation.scores import Bools, Interval

Z = 1.959964  # 97.5 % of the normal distribution lie below
_N_HALVINGS = 50


def wilson(share: float, n: int) -> Interval:
    """The 95 % interval of a share of n."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * (share * (1 - share) / n + Z**2 / (4 * n**2)) ** 0.5 / (1 + Z**2 / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def hybrid_interval(
    a: float, ends_a: Interval, b: float, ends_b: Interval, *, correlation: float = 0.0
) -> Interval:
    """The interval of a − b from those of a and b."""
    below_a, above_a = a - ends_a[0], ends_a[1] - a
    below_b, above_b = b - ends_b[0], ends_b[1] - b
    low = below_a**2 - 2 * correlation * below_a * above_b + above_b**2
    high = above_a**2 - 2 * correlation * above_a * below_b + below_b**2
    return max(a - b - sqrt(max(low, 0.0)), -1.0), min(a - b + sqrt(max(high, 0.0)), 1.0)


def share_interval(a: float, n_a: int, b: float, n_b: int) -> Interval:
    """The interval of a − b, shares of different texts."""
    return hybrid_interval(a, wilson(a, n_a), b, wilson(b, n_b))


def paired_interval(first: Bools, second: Bools) -> Interval:
    """The interval of a − b, shares of the same texts. first, second (text,)

    φ is 0 where one of them never changes. A positive one is taken a little smaller, as if half a
    pair were the other way round.
    """
    n = len(first)
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    only_1, only_2 = int((first & ~second).sum()), int((second & ~first).sum())
    product: float = both * neither - only_1 * only_2
    if product > 0:
        product = max(product - n / 2, 0.0)
    sides = (both + only_1) * (only_2 + neither) * (both + only_2) * (only_1 + neither)
    a, b = float(first.mean()), float(second.mean())
    phi = product / sqrt(sides) if sides else 0.0
    return hybrid_interval(a, wilson(a, n), b, wilson(b, n), correlation=phi)


def exact_interval(n_hits: int, n: int) -> Interval:
    """The shares at which so few, or so many, hits of n come with a chance of 2.5 % each."""
    logs = _log_factorials(n)
    ends = [0.0, 1.0]
    for side, (k, tail) in enumerate(((n_hits, 0.025), (n_hits + 1, 0.975))):
        if not 0 < k <= n:
            continue
        # the chance of k hits or more grows with that of one, so halving cannot go wrong
        hits = np.arange(k, n + 1)
        ways = logs[n] - logs[hits] - logs[n - hits]  # (hits,): log of n over hits
        low, high = 0.0, 1.0
        for _ in range(_N_HALVINGS):
            middle = (low + high) / 2
            logged = hits * np.log(middle) + (n - hits) * np.log1p(-middle)
            is_above = float(np.exp(ways + logged).sum()) > tail
            low, high = (low, middle) if is_above else (middle, high)
        ends[side] = (low + high) / 2
    return ends[0], ends[1]


def _log_factorials(n: int) -> Floats:
    """Log of k! for k = 0 … n."""
    return np.asarray(np.concatenate([[0.0], np.log(np.arange(1, n + 1))]).cumsum())


def share_test(a: float, n_a: int, b: float, n_b: int) -> float:
    """Two-sided p of a = b."""
    return two_sided(a - b, _pooled_error(a, n_a, b, n_b))


def exact_test(n_hits: tuple[int, int], n: tuple[int, int]) -> float:
    """One-sided p of the first group having no larger a share of hits than the second."""
    both, whole = sum(n_hits), sum(n)
    logs = _log_factorials(whole)

    def ways(total: int, chosen: Counts) -> Floats:
        return np.asarray(logs[total] - logs[chosen] - logs[total - chosen])

    here = np.arange(n_hits[0], min(n[0], both) + 1)  # as many hits in the first group, or more
    all_ways = ways(whole, np.array(both))
    chances = np.exp(ways(n[0], here) + ways(n[1], both - here) - all_ways)
    return min(float(chances.sum()), 1.0)


def mcnemar(first: Bools, second: Bools) -> float:
    """Two-sided p: does one happen more often than the other? first, second (text,)"""
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    n_ways = sum(comb(b + c, k) for k in range(min(b, c) + 1))
    return min(1.0, 2 * n_ways / 2 ** (b + c))


def share_power(share: float, n_a: int, n_b: int, gap: float) -> float:
    """The chance that `share_test` is under 0.05 if group b has this share and a has less by `gap`;
    if so much less is impossible, more.
    """
    other = share - gap if share >= gap else share + gap
    without = _pooled_error(other, n_a, share, n_b)
    with_gap = sqrt(other * (1 - other) / n_a + share * (1 - share) / n_b)
    return _below((gap - Z * without) / with_gap) if with_gap else 1.0


def two_sided(difference: float, error: float) -> float:
    """The p of a difference with a known standard error; 1 where nothing varies or differs."""
    if not error:
        return 0.0 if difference else 1.0
    return 2 * _below(-abs(difference) / error)


def normal_power(error: float, gap: float) -> float:
    """The chance that `two_sided` is under 0.05, for a true gap."""
    return 1.0 if not error else _below(gap / error - Z) + _below(-gap / error - Z)


def _below(z: float) -> float:
    """Φ: the share of the normal distribution that lies below."""
    return erfc(-z / sqrt(2)) / 2


def _pooled_error(a: float, n_a: int, b: float, n_b: int) -> float:
    both = (a * n_a + b * n_b) / (n_a + n_b)
    return sqrt(max(both * (1 - both), 0.0) * (1 / n_a + 1 / n_b))
