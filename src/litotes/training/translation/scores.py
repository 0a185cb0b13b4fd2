"""The quality of translations: BLEU and chrF by `sacrebleu`, with bootstrap intervals.

BLEU: Papineni et al. 2002, as Post 2018 (arXiv 1804.08771) makes it comparable; chrF: Popović 2015.
Several references count together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litotes.core.errors import UserError, require_extra
from litotes.core.numbers import Counts, Floats
from litotes.evaluation.scores import Interval, Result, interval

_RESAMPLES = 1000


@dataclass(frozen=True)
class Score:
    """interval: 95 %, over the texts. signature: how sacrebleu computed it."""

    value: float
    interval: Interval
    signature: str

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1f} [{low:.1f}, {high:.1f}]"


@dataclass(frozen=True)
class TranslationScores(Result):
    """The scores of `n` texts."""

    bleu: Score
    chrf: Score
    n: int


def score_translations(
    outputs: Sequence[str], references: Sequence[Sequence[str]], *, seed: int = 0
) -> TranslationScores:
    """references: for each output one or more texts; where texts have different numbers of them,
    the missing ones are left out.
    """
    metrics, by_number = _metrics(outputs, references)
    resampled = resample_scores(outputs, references, draw_samples(len(outputs), seed=seed))
    scores = {}
    for name, metric in metrics.items():
        value = metric.corpus_score(outputs, by_number).score
        scores[name] = Score(value, interval(resampled[name]), str(metric.get_signature()))
    return TranslationScores(**scores, n=len(outputs))


def draw_samples(n_texts: int, *, seed: int = 0) -> Counts:
    """The places of the texts of each bootstrap sample. (sample, text)"""
    return np.random.default_rng(seed).integers(n_texts, size=(_RESAMPLES, n_texts))


def resample_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], draws: Counts
) -> dict[str, Floats]:
    """BLEU and chrF of every sample, to compare models on the same samples. {name: (sample,)}"""
    metrics, by_number = _metrics(outputs, references)
    found = {}
    for name, metric in metrics.items():
        # the counts of texts add up to those of any sample of texts: (text, count)
        counts = np.array(metric._extract_corpus_statistics(outputs, by_number), dtype=float)
        sums = [counts[draw].sum(0).tolist() for draw in draws]
        found[name] = np.array([metric._compute_score_from_stats(one).score for one in sums])
    return found


def _metrics(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[dict[str, Any], list[Any]]:
    """Sacrebleu's metrics, and the references as it wants them: the first of every text, then the
    second …; None: there is none.
    """
    require_extra("translate", "BLEU")
    if len(outputs) != len(references):
        raise UserError(
            f"{len(outputs)} translations and {len(references)} references: give one line of"
            " references for every text."
        )
    if not outputs:
        raise UserError("There is no translation to score.")
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    most = max(len(one) for one in references)
    filled = [[*one, *[None] * (most - len(one))] for one in references]
    return {"bleu": BLEU(), "chrf": CHRF()}, list(zip(*filled, strict=True))
