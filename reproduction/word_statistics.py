"""Means over seeds with intervals, from what each text adds to a score.

Texts are drawn with replacement, the same for all seeds and both systems of a comparison; the
spread over seeds widens the interval (`litotes.evaluation.significance`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.data.words.corpus import Span
from litotes.evaluation.scores import interval
from litotes.evaluation.significance import seed_margin, widen_interval
from litotes.training.tagging.scores import draw_texts, f1_from, span_overlap
from reproduction.roc import roc_area

Floats = NDArray[np.float64]
Combine = Callable[[Floats], Floats]
"""From sums over texts (…, count) to a score (…)."""


def accuracy_counts(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> Floats:
    """Right words and words of each text. (text, 2)"""
    rows = []
    for tags, answers in zip(gold, found, strict=True):
        right = sum(one == other for one, other in zip(tags, answers, strict=True))
        rows.append((right, len(tags)))
    return np.array(rows, float)


def f1_counts(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]], label: str) -> Floats:
    """Hits, words found and words meant of each text. (text, 3)"""
    rows = []
    for tags, answers in zip(gold, found, strict=True):
        meant = [tag == label for tag in tags]
        given = [tag == label for tag in answers]
        hits = sum(one and other for one, other in zip(meant, given, strict=True))
        rows.append((hits, sum(given), sum(meant)))
    return np.array(rows, float)


def span_counts(gold: Sequence[Span | None], found: Sequence[Span | None]) -> Floats:
    """Exact match, overlap F1 and 1 of each text. (text, 3)"""
    rows = []
    for one, other in zip(gold, found, strict=True):
        rows.append((float(one == other), span_overlap(one, other), 1.0))
    return np.array(rows)


def ratio(sums: Floats) -> Floats:
    """The first count by the last."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., -1], 1))


def second_ratio(sums: Floats) -> Floats:
    return np.asarray(sums[..., 1] / np.maximum(sums[..., -1], 1))


def f1(sums: Floats) -> Floats:
    return f1_from(sums[..., 0], sums[..., 1], sums[..., 2])


def summarise(counts: Sequence[Floats], combine: Combine, *, seed: int = 0) -> dict[str, Any]:
    """The mean over seeds, with its interval. counts: of each seed (text, count)"""
    by_seed, drawn = _scores(counts, combine, seed=seed)
    over_texts = interval(drawn.mean(0))
    mean = float(by_seed.mean())
    bounds = widen_interval(mean, over_texts, seed_margin(by_seed), within=(0.0, 1.0))
    return {"mean": mean, "interval": bounds, "by_seed": by_seed.tolist()}


def compare(
    counts: Sequence[Floats], others: Sequence[Floats], combine: Combine, *, seed: int = 0
) -> dict[str, Any]:
    """The mean of the first less that of the others, on the same texts."""
    ours, our_draws = _scores(counts, combine, seed=seed)
    theirs, their_draws = _scores(others, combine, seed=seed)
    difference = float(ours.mean() - theirs.mean())
    over_texts = interval(our_draws.mean(0) - their_draws.mean(0))
    margin = seed_margin(ours, theirs)
    bounds = widen_interval(difference, over_texts, margin, within=(-1.0, 1.0))
    return {"difference": difference, "interval": bounds}


def word_auc(gold: Sequence[Sequence[str]], scores: Sequence[Sequence[float]], label: str) -> float:
    """How often a word with the label has the higher score of two; ties count half."""
    meant = np.array([tag == label for tags in gold for tag in tags])
    values = np.array([score for own in scores for score in own], float)
    return roc_area(values, meant)


def _scores(counts: Sequence[Floats], combine: Combine, *, seed: int) -> tuple[Floats, Floats]:
    """The score of each seed, (seed,), and on each resample, (seed, resample)."""
    draws = draw_texts(len(counts[0]), seed=seed)  # (resample, text)
    by_seed = np.array([float(combine(own.sum(0))) for own in counts])
    return by_seed, np.stack([combine(draws @ own) for own in counts])
