"""How good translations are: BLEU and chrF by `sacrebleu`, with bootstrap intervals.

BLEU: Papineni et al. 2002, as Post 2018 (arXiv 1804.08771) makes it comparable; chrF: Popović 2015.
Several references count together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.extras import require_extra

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
    require_extra("translate", "BLEU")
    if len(outputs) != len(references):
        raise UserError(
            f"{len(outputs)} translations and {len(references)} references: give one line of"
            " references for every text."
        )
    if not outputs:
        raise UserError("There is no translation to score.")
    from sacrebleu.metrics import BLEU, CHRF

    most = max(len(one) for one in references)
    # sacrebleu wants the first reference of every text, then the second …; None: there is none
    by_number = [
        [one[number] if number < len(one) else None for one in references]
        for number in range(most)
    ]
    draws = np.random.default_rng(seed).integers(len(outputs), size=(_RESAMPLES, len(outputs)))
    found = [_score(metric, outputs, by_number, draws) for metric in (BLEU(), CHRF())]
    return TranslationScores(*found, n=len(outputs))


def _score(metric: Any, outputs: Sequence[str], references: Any, draws: Any) -> Score:
    whole = metric.corpus_score(outputs, references)
    # counts of each text, which add up to those of any sample of texts
    counts = np.array(metric._extract_corpus_statistics(outputs, references), dtype=np.float64)
    compute: Callable[[list[float]], Any] = metric._compute_score_from_stats
    values = [compute(counts[draw].sum(0).tolist()).score for draw in draws]
    low, high = np.percentile(values, [2.5, 97.5]).tolist()
    return Score(whole.score, (low, high), str(metric.get_signature()))
