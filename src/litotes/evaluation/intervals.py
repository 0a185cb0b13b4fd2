"""Intervals of a mean over a few seeds: other texts and other seeds would have given another
number.

    low  = mean − √(d² + m²)
    high = mean + √(u² + m²)

    d, u: from the mean down and up to the ends of the 95 % bootstrap interval over texts, seeds
          as given
    m = t · s / √S: Student's margin of a mean of S seeds, s their standard deviation on the same
          texts, t the 97.5 % quantile with S − 1 degrees of freedom

Drawing seeds with replacement, as texts are drawn, would fail here: a resample of two or three
seeds varies too little by a factor √((S − 1) / S), and it has no idea how badly s itself is known.
Student's t knows (12.7 for two seeds, 4.3 for three). Texts and seeds vary independently, so their
variances add. Both parts hold the luck of one model on one text, so the interval is a little wide.
"""

from __future__ import annotations

import numpy as np

from litotes.core.numbers import Counts, Floats, classes_of, macro_f1
from litotes.evaluation.answer_patterns import AnswerPatterns, find_patterns, split_draws
from litotes.evaluation.scores import N_RESAMPLES, interval, with_unseen


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
