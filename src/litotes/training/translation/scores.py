"""How good translations are: BLEU and chrF by `sacrebleu`, with bootstrap intervals.

BLEU: Papineni et al. 2002, as Post 2018 (arXiv 1804.08771) makes it comparable; chrF: Popović 2015.
Several references count together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError, require_extra

_RESAMPLES = 1000


@dataclass(frozen=True)
class Score:
    """interval: 95 %, over the texts. signature: how sacrebleu computed it."""

    value: float
    interval: tuple[float, float]
    signature: str

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1f} [{low:.1f}, {high:.1f}]"


@dataclass(frozen=True)
class TranslationScores:
    """Of `n` texts."""

    bleu: Score
    chrf: Score
    n: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def score_translations(
    outputs: Sequence[str], references: Sequence[Sequence[str]], *, seed: int = 0
) -> TranslationScores:
    """references: for each output one or more texts; where texts have different numbers of them,
    the missing ones are left out.
    """
    draws = draw_samples(len(outputs), seed=seed)
    found = []
    for metric in _metrics(outputs, references):
        low, high = np.percentile(metric.resample(draws), [2.5, 97.5]).tolist()
        found.append(Score(metric.value, (low, high), metric.signature))
    bleu, chrf = found
    return TranslationScores(bleu, chrf, len(outputs))


def draw_samples(n_texts: int, *, seed: int = 0) -> NDArray[np.int64]:
    """The places of the texts of each bootstrap sample. (sample, text)"""
    return np.random.default_rng(seed).integers(n_texts, size=(_RESAMPLES, n_texts))


def resample_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], draws: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """BLEU and chrF of every sample, to compare models on the same samples. {name: (sample,)}"""
    bleu, chrf = _metrics(outputs, references)
    return {"bleu": bleu.resample(draws), "chrf": chrf.resample(draws)}


@dataclass(frozen=True)
class _Metric:
    """counts: of each text, which add up to those of any sample of texts. (text, count)"""

    value: float
    signature: str
    counts: NDArray[np.float64]
    score: Callable[[list[float]], Any]

    def resample(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        sums = [self.counts[draw].sum(0).tolist() for draw in draws]
        return np.array([self.score(one).score for one in sums])


def _metrics(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[_Metric]:
    """BLEU, then chrF."""
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

    # sacrebleu wants the first reference of every text, then the second …; None: there is none
    most = max(len(one) for one in references)
    filled = [[*one, *[None] * (most - len(one))] for one in references]
    by_number: Any = list(zip(*filled, strict=True))
    found = []
    metrics: list[Any] = [BLEU(), CHRF()]
    for metric in metrics:
        value = metric.corpus_score(outputs, by_number).score
        counts = np.array(metric._extract_corpus_statistics(outputs, by_number), dtype=np.float64)
        signature = str(metric.get_signature())
        found.append(_Metric(value, signature, counts, metric._compute_score_from_stats))
    return found
