"""Differences between two groups of texts that share none: shares, intervals, tests and power.

test       z = (a − b) / √(p̄ (1 − p̄) (1/n_a + 1/n_b)), p̄ the share of both groups together
interval   Newcombe's hybrid score (1998, method 10): with Wilson's limits l, u of each share,
           a − b − √((a − l_a)² + (u_b − b)²)   to   a − b + √((u_a − a)² + (b − l_b)²)
power      Φ((|δ| − z₀.₉₇₅ s₀) / s₁) for a true gap δ, s₀ and s₁ the standard errors of a − b
           without and with the gap
"""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from litotes.core.counts import Floats
from litotes.evaluation.reliability import wilson

_Z = 1.959964  # 97.5 % of the normal distribution lie below


def share_interval(a: float, n_a: int, b: float, n_b: int) -> tuple[float, float]:
    """The 95 % interval of a − b."""
    (low_a, high_a), (low_b, high_b) = wilson(a, n_a), wilson(b, n_b)
    low = a - b - sqrt((a - low_a) ** 2 + (high_b - b) ** 2)
    high = a - b + sqrt((high_a - a) ** 2 + (b - low_b) ** 2)
    return max(low, -1.0), min(high, 1.0)


def share_test(a: float, n_a: int, b: float, n_b: int) -> float:
    """Two-sided p of a = b."""
    error = _pooled_error(a, n_a, b, n_b)
    return two_sided(a - b, error)


def share_power(share: float, n_a: int, n_b: int, gap: float) -> float:
    """The chance that `share_test` is under 0.05 if group b has this share and a has less by `gap`;
    if so much less is impossible, more.
    """
    other = share - gap if share >= gap else share + gap
    without = _pooled_error(other, n_a, share, n_b)
    with_gap = sqrt(other * (1 - other) / n_a + share * (1 - share) / n_b)
    if not with_gap:
        return 1.0
    return _below((gap - _Z * without) / with_gap)


def two_sided(difference: float, error: float) -> float:
    """The p of a difference with a known standard error; 1 where nothing varies or differs."""
    if not error:
        return 1.0 if not difference else 0.0
    return 2 * _below(-abs(difference) / error)


def normal_power(error: float, gap: float) -> float:
    """The chance that `two_sided` is under 0.05, for a true gap."""
    return 1.0 if not error else _below(gap / error - _Z) + _below(-gap / error - _Z)


def cohen_kappa(counts: Floats) -> float:
    """Agreement beyond chance (Cohen 1960) of confusion counts (class, class): 1 is perfect, 0 what
    two would have who only know how common the labels are; 0 if both give one label alone.
    """
    shares = counts / counts.sum()
    by_chance = float(shares.sum(0) @ shares.sum(1))
    if by_chance >= 1:
        return 0.0
    return (float(np.trace(shares)) - by_chance) / (1 - by_chance)


def _below(z: float) -> float:
    """Φ: the share of the normal distribution that lies below."""
    return erfc(-z / sqrt(2)) / 2


def _pooled_error(a: float, n_a: int, b: float, n_b: int) -> float:
    both = (a * n_a + b * n_b) / (n_a + n_b)
    return sqrt(max(both * (1 - both), 0.0) * (1 / n_a + 1 / n_b))
