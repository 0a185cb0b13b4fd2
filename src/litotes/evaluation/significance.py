"""Is a number, or a difference between two systems, more than luck?

Texts that no count can tell apart have the same gold class and the same answer from every model.
Resampling or swapping texts only asks how often each such pattern comes, and there are few of them:
at most 2^(1 + models) with two classes. Thousands of resamples then cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats, classes_of, format_signed, macro_f1
from litotes.evaluation.scores import (
    N_RESAMPLES,
    Interval,
    Result,
    interval,
    unseen_fall,
    with_unseen,
)

_LARGEST = 4_000_000
"""Numbers drawn at once: 32 MB."""


@dataclass(frozen=True)
class AnswerPatterns:
    """n (pattern,): how many texts have it; gold (pattern,); predicted (model, pattern)."""

    n: Counts
    gold: Counts
    predicted: Counts
    n_classes: int

    def confusions(self, n: NDArray[np.int64 | np.float64]) -> Floats:
        """Confusion counts of every model when pattern p comes n[…, p] times.

        (…, pattern) → (…, model, gold, predicted)
        """
        n_models, n_patterns = self.predicted.shape
        # (model, pattern): the confusion cell it falls into
        place = self.gold * self.n_classes + self.predicted
        one_hot = np.eye(self.n_classes**2)[place]  # (model, pattern, class²)
        by_pattern = one_hot.swapaxes(0, 1).reshape(n_patterns, -1)
        shape = (*n.shape[:-1], n_models, self.n_classes, self.n_classes)
        return np.asarray((n @ by_pattern).reshape(shape))


def find_patterns(gold: Counts, predicted: Counts, n_classes: int) -> AnswerPatterns:
    """The patterns of some texts. gold (text,), predicted (model, text)"""
    columns, n = np.unique(np.vstack([gold, predicted]), axis=1, return_counts=True)
    return AnswerPatterns(n, columns[0], columns[1:], n_classes)


def split_draws(n_draws: int, n_patterns: int) -> Iterator[int]:
    """Cuts draws × patterns into parts that fit in memory: the number of draws of each."""
    size = max(1, _LARGEST // max(n_patterns, 1))
    for start in range(0, n_draws, size):
        yield min(size, n_draws - start)


def draw_texts(n: int, generator: np.random.Generator) -> Iterator[Counts]:
    """Draws how often each of n texts comes in every resample, a part of the resamples at a time.

    (resample, text)
    """
    for size in split_draws(N_RESAMPLES, n):
        yield generator.multinomial(n, np.full(n, 1 / n), size=size)


def scores_of(found: AnswerPatterns) -> Floats:
    """Macro-F1 of every model. (model,)"""
    return macro_f1(found.confusions(found.n))


def text_bootstrap(found: AnswerPatterns, *, seed: int, expected: Floats | None = None) -> Floats:
    """Macro-F1 of every model on the same resampled texts. (resample, model)

    expected: how many texts of each pattern there should be, in place of how many there are,
    (pattern,).
    """
    generator = np.random.default_rng(seed)
    among = np.array([classes_of(counts) for counts in found.confusions(found.n)])  # (model, class)
    wanted = found.n if expected is None else expected
    n = round(float(wanted.sum()))
    scores = []
    for size in split_draws(N_RESAMPLES, len(found.n)):
        draws = generator.multinomial(n, wanted / n, size=size)  # (resample, pattern)
        scores.append(macro_f1(found.confusions(draws), among))
    return np.concatenate(scores)


def interval_over_texts(found: AnswerPatterns, *, seed: int) -> Interval:
    """The 95 % interval of macro-F1, mean over models."""
    drawn = interval(text_bootstrap(found, seed=seed).mean(1))
    return with_unseen(drawn, found.confusions(found.n).mean(0))


# Intervals of a mean over a few seeds: other texts and other seeds would have given another
# number.
#
#     low  = mean − √(d² + m²)
#     high = mean + √(u² + m²)
#
#     d, u: from the mean down and up to the ends of the 95 % bootstrap interval over texts, seeds
#           as given
#     m = t · s / √S: Student's margin of a mean of S seeds, s their standard deviation on the same
#           texts, t the 97.5 % quantile with S − 1 degrees of freedom
#
# Drawing seeds with replacement, as texts are drawn, would fail here: a resample of two or three
# seeds varies too little by a factor √((S − 1) / S), and it has no idea how badly s itself is
# known. Student's t knows (12.7 for two seeds, 4.3 for three). Texts and seeds vary independently,
# so their variances add. Both parts hold the luck of one model on one text, so the interval is a
# little wide.


def mean_interval(gold: Counts, predicted: Counts, n_classes: int, *, seed: int) -> Interval:
    """The 95 % interval of macro-F1, mean over seeds; with one seed, over texts alone.

    gold (text,), predicted (seed, text)
    """
    found = find_patterns(gold, predicted, n_classes)
    return estimate_mean(scores_of(found), interval_over_texts(found, seed=seed)).interval


def seed_margin(*systems: Floats) -> float:
    """Student's 95 % margin of a mean over seeds, or of a sum or difference of such means.

    Degrees of freedom after Welch (1947): (Σ v)² / Σ (v² / (S − 1)) with v = s² / S; for one
    system this is S − 1. One seed alone does not show how much seeds differ and adds nothing.
    systems: the scores of each, (seed,)
    """
    several = [scores for scores in systems if len(scores) > 1]
    variances = np.array([scores.var(ddof=1) / len(scores) for scores in several])
    if not variances.any():
        return 0.0
    from scipy.special import stdtrit  # comes with litotes[train]: who has seeds has trained

    freedoms = np.array([len(scores) - 1 for scores in several])
    freedom = variances.sum() ** 2 / (variances**2 / freedoms).sum()
    return float(stdtrit(freedom, 0.975) * np.sqrt(variances.sum()))


def widen_interval(
    value: float, over_texts: Interval, margin: float, *, within: Interval
) -> Interval:
    """The interval over texts, widened by the seeds' margin, cut to what is possible."""
    low = value - np.hypot(max(value - over_texts[0], 0.0), margin)
    high = value + np.hypot(max(over_texts[1] - value, 0.0), margin)
    return float(max(low, within[0])), float(min(high, within[1]))


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    interval: Interval

    @property
    def is_clear(self) -> bool:
        """True if the sign of a difference is known."""
        return self.interval[0] > 0 or self.interval[1] < 0

    @property
    def size(self) -> float:
        return abs(self.value)

    def numbers(self) -> tuple[float, float, float]:
        return self.value, *self.interval

    def less(self, constant: float) -> Estimate:
        value, low, high = (one - constant for one in self.numbers())
        return Estimate(value, (low, high))

    def text(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"

    def signed(self, *, scale: float = 1, digits: int = 3) -> str:
        """A difference, with a minus that is as wide as the plus."""
        numbers = (format_signed(scale * one, digits, minus="−") for one in self.numbers())
        return "{} ({} to {})".format(*numbers)

    def beside(self, other: str) -> str:
        """`0.072 lower than the paper's (0.041 to 0.111)`: the sign in words, if it is known."""
        if not self.is_clear:
            return f"not clearly higher or lower than {other}: {self.signed()}"
        low, high = sorted(abs(end) for end in self.interval)
        direction = "higher" if self.value > 0 else "lower"
        return f"{abs(self.value):.3f} {direction} than {other} ({low:.3f} to {high:.3f})"


def estimate_mean(
    by_seed: Floats, over_texts: Interval, *, within: Interval = (0.0, 1.0)
) -> Estimate:
    """The mean over seeds (seed,) with its interval over texts and seeds."""
    value, margin = float(by_seed.mean()), seed_margin(by_seed)
    return Estimate(value, widen_interval(value, over_texts, margin, within=within))


# Is the difference between two systems real?
#
# Both have answered the same texts, each with one or several seeds.
#
# T = mean over seeds of macro-F1 of a − mean over seeds of macro-F1 of b

N_PERMUTATIONS = 10_000

SIGNIFICANT = 0.05
"""A corrected p under this is called significant."""

ROUNDING = 1e-12
"""Two ways to the same sum may end in other last bits."""


@dataclass(frozen=True, repr=False)
class Difference(Result):
    """System a minus b in macro-F1: mean over seeds, 95 % interval over texts and seeds, p of
    the paired permutation test.

    The interval asks about other texts and other seeds, p about these seeds alone: with seeds that
    differ much, p may be small while the interval holds 0. Then more seeds are needed, not more
    texts.
    """

    shown = ("difference", "interval", "p")
    difference: float
    interval: Interval
    p: float
    n: int
    n_seeds: tuple[int, int]


def difference(
    gold: Counts,
    a: Counts,
    b: Counts,
    n_classes: int,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> Difference:
    """A minus b. gold (text,), a and b (seed, text)

    Texts are resampled jointly, so what is hard for both cancels. Where both answer all texts
    alike, the interval is what either would lose if `unseen_share` of its right answers were not.
    The seeds' margin is Welch's for two independent groups of seeds: seed 0 of a has no more to do
    with seed 0 of b than with seed 1.
    """
    both = find_patterns(gold, np.vstack([a, b]), n_classes)
    of_a, of_b = np.split(scores_of(both), [len(a)])
    # (resample, seed) each
    resampled_a, resampled_b = np.split(text_bootstrap(both, seed=seed), [len(a)], axis=1)
    value = float(of_a.mean() - of_b.mean())
    over_texts = interval(resampled_a.mean(1) - resampled_b.mean(1))
    if np.ptp(over_texts) < ROUNDING:  # equal answers to these texts, which others may not get
        counts = both.confusions(both.n)[: len(a)].mean(0)
        fall = float(macro_f1(counts)) - unseen_fall(counts)
        over_texts = (value - fall, value + fall)
    return Difference(
        difference=value,
        interval=widen_interval(value, over_texts, seed_margin(of_a, of_b), within=(-1.0, 1.0)),
        p=permutation_test(gold, a, b, n_classes, n_permutations=n_permutations, seed=seed),
        n=len(gold),
        n_seeds=(len(a), len(b)),
    )


def permutation_test(
    gold: Counts,
    a: Counts,
    b: Counts,
    n_classes: int,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> float:
    """Two-sided p of the paired approximate randomisation test (Noreen 1989; Yeh 2000, COLING).

        p = (1 + #{|T*| ≥ |T|}) / (1 + n_permutations)

    Null: for every text it is a coin's toss which system gave which answers. T* tosses the coin for
    every text: heads swaps the answers of a and b, those of all seeds together, since the answers
    of a system's seeds to one text go together. The seeds are taken as given: p is about these
    trained models on other texts, not about models of other seeds.

    Seed s of a is swapped with seed s of b. Unequal numbers of seeds are repeated up to their least
    common multiple, which changes no mean. Blocks of unequal variety are not exchangeable to the
    letter; the toss then turns the sign of the text's mean difference, and p is right for many
    texts (in a simulation with 3 seeds against 1 and 200 texts it is).

    gold (text,), a and b (seed, text)
    """
    # the same draws whichever is called a, so p(a, b) = p(b, a) to the last bit
    if a.tobytes() > b.tobytes():
        a, b = b, a
    n_rows = lcm(len(a), len(b))
    rows = np.vstack([np.tile(one, (n_rows // len(one), 1)) for one in (a, b)])  # (row, text)
    found = find_patterns(gold, rows, n_classes)
    swapped = replace(found, predicted=np.roll(found.predicted, n_rows, axis=0))

    def gap(counts: Floats) -> Any:
        """|T| of confusion counts. (…, row, gold, predicted) → (…)"""
        scores = macro_f1(counts)  # (…, row)
        return np.abs(scores[..., :n_rows].mean(-1) - scores[..., n_rows:].mean(-1))

    observed = gap(found.confusions(found.n)) - ROUNDING
    generator = np.random.default_rng(seed)
    n_as_large = 0
    for size in split_draws(n_permutations, len(found.n)):
        # (permutation, pattern)
        n_swapped = generator.binomial(found.n, 0.5, size=(size, len(found.n)))
        counts = found.confusions(found.n - n_swapped) + swapped.confusions(n_swapped)
        n_as_large += int((gap(counts) >= observed).sum())
    return (1 + n_as_large) / (1 + n_permutations)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted for how many were asked at once (Holm 1979), in the order given.

    The k-th smallest of m is multiplied by m − k + 1, made no smaller than the one before it, and
    capped at 1. Calling significant what stays under 0.05 errs once or more with a chance of at
    most 0.05, whatever the tests have to do with each other.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return tuple(adjusted.tolist())


class Tested:
    """One of several tests: `adjusted_p` is Holm's over all of them."""

    derived: ClassVar[tuple[str, ...]] = ("is_significant",)
    adjusted_p: float

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT


OneOfSeveral = TypeVar("OneOfSeveral", bound=Tested)


def correct(
    tests: Sequence[OneOfSeveral], p_of: Callable[[OneOfSeveral], float] = attrgetter("p")
) -> list[OneOfSeveral]:
    """The tests with p corrected over all of them."""
    pairs: Any = zip(tests, holm([p_of(one) for one in tests]), strict=True)
    return [replace(one, adjusted_p=p) for one, p in pairs]
