"""Texts that no count can tell apart: the same gold class and the same answer from every model.

Resampling or swapping texts only asks how often each such pattern comes, and there are few of them:
at most 2^(1 + models) with two classes. Thousands of resamples then cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, classes_of, format_signed, macro_f1
from litotes.evaluation.scores import N_RESAMPLES, interval, unseen_fall, with_unseen

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
        return np.asarray(
            (n @ by_pattern).reshape(*n.shape[:-1], n_models, self.n_classes, self.n_classes)
        )


def find_patterns(gold: Counts, predicted: Counts, n_classes: int) -> AnswerPatterns:
    """The patterns of some texts. gold (text,), predicted (model, text)"""
    columns, n = np.unique(np.vstack([gold, predicted]), axis=1, return_counts=True)
    return AnswerPatterns(n, columns[0], columns[1:], n_classes)


def split_draws(n_draws: int, n_patterns: int) -> Iterator[int]:
    """Cuts draws × patterns into parts that fit in memory: the number of draws of each."""
    size = max(1, _LARGEST // max(n_patterns, 1))
    for start in range(0, n_draws, size):
        yield min(size, n_draws - start)


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
# known.
# Student's t knows (12.7 for two seeds, 4.3 for three). Texts and seeds vary independently, so
# their
# variances add. Both parts hold the luck of one model on one text, so the interval is a little
# wide.


def mean_interval(
    gold: Counts, predicted: Counts, n_classes: int, *, seed: int
) -> tuple[float, float]:
    """The 95 % interval of macro-F1, mean over seeds; with one seed, over texts alone.

    gold (text,), predicted (seed, text)
    """
    found = find_patterns(gold, predicted, n_classes)
    by_seed = scores_of(found)
    drawn = interval(text_bootstrap(found, seed=seed).mean(1))
    over_texts = with_unseen(drawn, found.confusions(found.n).mean(0))
    return widen_interval(
        float(by_seed.mean()), over_texts, seed_margin(by_seed), within=(0.0, 1.0)
    )


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
    value: float, over_texts: tuple[float, float], margin: float, *, within: tuple[float, float]
) -> tuple[float, float]:
    """The interval over texts, widened by the seeds' margin, cut to what is possible."""
    low = value - np.hypot(max(value - over_texts[0], 0.0), margin)
    high = value + np.hypot(max(over_texts[1] - value, 0.0), margin)
    return float(max(low, within[0])), float(min(high, within[1]))


# Is the difference between two systems real?
#
# Both have answered the same texts, each with one or several seeds.
#
# T = mean over seeds of macro-F1 of a − mean over seeds of macro-F1 of b

N_PERMUTATIONS = 10_000

SIGNIFICANT = 0.05
"""A corrected p under this is called significant."""

_ROUNDING = 1e-12  # two ways to the same sum may end in other last bits


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Of a difference: whether its sign is known."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def less(self, constant: float) -> Estimate:
        low, high = self.interval
        return Estimate(self.value - constant, (low - constant, high - constant))

    def text(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"

    def signed(self, *, scale: float = 1, digits: int = 3) -> str:
        """A difference, with a minus that is as wide as the plus."""
        value, low, high = (
            format_signed(scale * one, digits, minus="−") for one in (self.value, *self.interval)
        )
        return f"{value} ({low} to {high})"

    def beside(self, other: str) -> str:
        """`0.072 lower than the paper's (0.041 to 0.111)`: the sign in words, if it is known."""
        if not self.is_clear:
            return f"not clearly higher or lower than {other}: {self.signed()}"
        low, high = sorted(abs(end) for end in self.interval)
        direction = "higher" if self.value > 0 else "lower"
        return f"{abs(self.value):.3f} {direction} than {other} ({low:.3f} to {high:.3f})"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Difference:
    """System a less system b in macro-F1: mean over seeds, 95 % interval over texts and seeds, p of
    the paired permutation test.

    The interval asks about other texts and other seeds, p about these seeds alone: with seeds that
    differ much, p may be small while the interval holds 0. Then more seeds are needed, not more
    texts.
    """

    difference: float
    interval: tuple[float, float]
    p: float
    n: int
    n_seeds: tuple[int, int]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def difference(
    gold: Counts,
    a: Counts,
    b: Counts,
    n_classes: int,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> Difference:
    """A less b. gold (text,), a and b (seed, text)

    Texts are resampled jointly, so what is hard for both cancels. Where both answer all texts
    alike, the interval is what either would lose if `unseen_share` of its right answers were not.
    The seeds' margin is Welch's for two independent groups of seeds: seed 0 of a has no more to do
    with seed 0 of b than with seed 1.
    """
    _check(gold, a, b)
    both = find_patterns(gold, np.vstack([a, b]), n_classes)
    of_a, of_b = np.split(scores_of(both), [len(a)])
    # (resample, seed) each
    resampled_a, resampled_b = np.split(text_bootstrap(both, seed=seed), [len(a)], axis=1)
    value = float(of_a.mean() - of_b.mean())
    over_texts = interval(resampled_a.mean(1) - resampled_b.mean(1))
    if np.ptp(over_texts) < _ROUNDING:  # equal answers to these texts, which others may not get
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
    _check(gold, a, b)
    # the same draws whichever is called a, so p(a, b) = p(b, a) to the last bit
    if a.tobytes() > b.tobytes():
        a, b = b, a
    n_rows = lcm(len(a), len(b))
    rows = np.vstack([_repeat(a, n_rows), _repeat(b, n_rows)])
    found = find_patterns(gold, rows, n_classes)
    n_as_large = _count_as_large(found, n_rows, n_permutations, seed=seed)
    return (1 + n_as_large) / (1 + n_permutations)


def _repeat(answers: Counts, n_rows: int) -> Counts:
    """(seed, text) → (row, text)"""
    return np.tile(answers, (n_rows // len(answers), 1))


def _count_as_large(found: AnswerPatterns, n_rows: int, n_permutations: int, *, seed: int) -> int:
    """How many permutations give a difference at least as large as the observed one."""
    observed = abs(_gap(found.confusions(found.n), n_rows)) - _ROUNDING
    swapped = _swap_rows(found)
    generator = np.random.default_rng(seed)
    n_as_large = 0
    for size in split_draws(n_permutations, len(found.n)):
        # (permutation, pattern)
        n_swapped = generator.binomial(found.n, 0.5, size=(size, len(found.n)))
        counts = found.confusions(found.n - n_swapped) + swapped.confusions(n_swapped)
        n_as_large += int((np.abs(_gap(counts, n_rows)) >= observed).sum())
    return n_as_large


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted for how many were asked at once (Holm 1979), in the order given.

    The k-th smallest of m is multiplied by m − k + 1, made no smaller than the one before it, and
    capped at 1. Calling significant what stays under 0.05 errs once or more with a chance of at
    most 0.05, whatever the tests have to do with each other.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p-values lie between 0 and 1: {list(p_values)}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return tuple(adjusted.tolist())


def _gap(counts: Floats, n_rows: int) -> Any:
    """T of confusion counts whose first n_rows models are a's. (…, model, gold, predicted) → (…)"""
    scores = macro_f1(counts)  # (…, model)
    return scores[..., :n_rows].mean(-1) - scores[..., n_rows:].mean(-1)


def _swap_rows(found: AnswerPatterns) -> AnswerPatterns:
    """The same patterns with the answers of a and b exchanged."""
    return AnswerPatterns(
        found.n,
        found.gold,
        np.roll(found.predicted, len(found.predicted) // 2, axis=0),
        found.n_classes,
    )


def _check(gold: Counts, a: Counts, b: Counts) -> None:
    if not len(gold):
        raise UserError(
            "There are no texts to compare two systems on. Choose a split or a cell that has some."
        )
    for name, rows in (("first", a), ("second", b)):
        if rows.ndim != 2 or not len(rows) or rows.shape[1] != len(gold):
            raise UserError(
                f"The {name} system has answers of the shape {rows.shape}, (seed, text), for"
                f" {len(gold)} texts. Both must have answered the same texts; score them on the"
                " same split."
            )


def estimate_mean(
    by_seed: Floats, resampled: Floats, *, within: tuple[float, float] = (0.0, 1.0)
) -> Estimate:
    """The mean over seeds with its interval over texts and seeds. (seed,), (resample,)"""
    value = float(by_seed.mean())
    margin = seed_margin(by_seed)
    return Estimate(value, widen_interval(value, interval(resampled), margin, within=within))
