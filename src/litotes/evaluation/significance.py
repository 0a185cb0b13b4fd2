"""Is the difference between two systems real?

Both have answered the same texts, each with one or several seeds.

T = mean over seeds of macro-F1 of a − mean over seeds of macro-F1 of b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import lcm
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, macro_f1
from litotes.evaluation.answer_patterns import AnswerPatterns, find_patterns, split_draws
from litotes.evaluation.intervals import scores_of, seed_margin, text_bootstrap, widen_interval
from litotes.evaluation.scores import interval, unseen_fall

N_PERMUTATIONS = 10_000

SIGNIFICANT = 0.05
"""A corrected p under this is called significant."""

_ROUNDING = 1e-12  # two ways to the same sum may end in other last bits


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
