"""Differences between two groups of texts that share none: shares, intervals, tests and power.

test       z = (a − b) / √(p̄ (1 − p̄) (1/n_a + 1/n_b)), p̄ the share of both groups together
exact test P(X ≥ k_a), X hypergeometric: k_a + k_b hits dealt to n_a + n_b texts (Fisher 1934); for
           few texts or rare hits, where z is no longer normal
interval   Newcombe's hybrid score (1998, method 10): with Wilson's limits l, u of each share,
           a − b − √((a − l_a)² + (u_b − b)²)   to   a − b + √((u_a − a)² + (b − l_b)²)
power      Φ((|δ| − z₀.₉₇₅ s₀) / s₁) for a true gap δ, s₀ and s₁ the standard errors of a − b
           without and with the gap

Macro-F1 is treated in the same way: z = (a − b) / s with s the standard error if each label's texts
were answered alike in both groups, as in both together; its interval is the hybrid of those of each
group, `over_texts`. A group's own bootstrap would not do for s: 30 texts without a mistake do not
vary at all, and any difference from them would be significant.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats
from litotes.evaluation.answer_patterns import AnswerPatterns, find_patterns
from litotes.evaluation.intervals import scores_of, text_bootstrap
from litotes.evaluation.reliability import wilson
from litotes.evaluation.scores import interval, with_unseen

_Z = 1.959964  # 97.5 % of the normal distribution lie below


def share_interval(a: float, n_a: int, b: float, n_b: int) -> tuple[float, float]:
    """The 95 % interval of a − b."""
    return hybrid_interval(a, wilson(a, n_a), b, wilson(b, n_b))


def hybrid_interval(
    a: float, ends_a: tuple[float, float], b: float, ends_b: tuple[float, float]
) -> tuple[float, float]:
    """The interval of a − b from those of a and b."""
    (low_a, high_a), (low_b, high_b) = ends_a, ends_b
    low = a - b - sqrt((a - low_a) ** 2 + (high_b - b) ** 2)
    high = a - b + sqrt((high_a - a) ** 2 + (b - low_b) ** 2)
    return max(low, -1.0), min(high, 1.0)


def share_test(a: float, n_a: int, b: float, n_b: int) -> float:
    """Two-sided p of a = b."""
    error = _pooled_error(a, n_a, b, n_b)
    return two_sided(a - b, error)


def exact_test(n_hits: tuple[int, int], n: tuple[int, int]) -> float:
    """One-sided p of the first group having no larger a share of hits than the second."""
    both, whole = sum(n_hits), sum(n)
    logs = np.concatenate([[0.0], np.log(np.arange(1, whole + 1))]).cumsum()  # log k!

    def ways(total: int, chosen: NDArray[np.int64]) -> Floats:
        return np.asarray(logs[total] - logs[chosen] - logs[total - chosen])

    here = np.arange(n_hits[0], min(n[0], both) + 1)  # as many hits in the first group, or more
    all_ways = ways(whole, np.array(both))
    chances = np.exp(ways(n[0], here) + ways(n[1], both - here) - all_ways)
    return min(float(chances.sum()), 1.0)


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


@dataclass(frozen=True)
class F1Gap:
    """Macro-F1 of a group less that of all other texts.

    by_model: (model,). over_texts: the 95 % interval of their mean. error: its standard error
    without a gap.
    """

    by_model: Floats
    over_texts: tuple[float, float]
    error: float

    @property
    def difference(self) -> float:
        return float(self.by_model.mean())


def f1_gap(
    gold: Counts, predicted: Counts, own: NDArray[np.bool_], n_classes: int, *, seed: int
) -> F1Gap:
    """A group against the rest. gold (text,), predicted (model, text), own (text,): the group."""
    whole = find_patterns(gold, predicted, n_classes)
    scores, ends, errors = [], [], []
    for number, side in enumerate((own, ~own)):
        found = find_patterns(gold[side], predicted[:, side], n_classes)
        scores.append(scores_of(found))
        # not the same draws for both: they are different texts
        drawn = interval(text_bootstrap(found, seed=seed + number).mean(1))
        ends.append(with_unseen(drawn, found.confusions(found.n).mean(0)))
        alike = _if_answered_alike(whole, gold[side])
        drawn_alike = text_bootstrap(whole, seed=seed + number, expected=alike)
        errors.append(float(drawn_alike.mean(1).std()))
    a, b = (float(one.mean()) for one in scores)
    over_texts = hybrid_interval(a, ends[0], b, ends[1])
    return F1Gap(scores[0] - scores[1], over_texts, float(np.hypot(errors[0], errors[1])))


def _if_answered_alike(whole: AnswerPatterns, gold: Counts) -> Floats:
    """How often each pattern of the whole would come among texts with these labels, (text,), if
    those of a label were answered as in the whole. (pattern,)
    """
    n_whole = np.bincount(whole.gold, weights=whole.n, minlength=whole.n_classes)
    share = np.bincount(gold, minlength=whole.n_classes) / np.maximum(n_whole, 1)  # (class,)
    return np.asarray(whole.n * share[whole.gold])


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
