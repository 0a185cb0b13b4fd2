"""Whether a method's words are those the answer rests on: they are taken away, or kept alone, and
the model is asked again.

DeYoung et al. 2020 (ERASER), arXiv 1911.03429, §4, with p the probability of the answer first given
(a regression: its value, less how far the new value is from it, whichever way it moves), x a text,
r_s the share s of its words that a method puts first:

    comprehensiveness = mean over s of p(x) − p(x without r_s)        sufficiency loss = mean over s of p(x) − p(r_s alone)

Words really leave: their pieces are gone from the packed text, the others close up, special pieces
stay. Words of a pair count alike. A signed method puts first what speaks most for the answer, and
last what speaks most against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from litotes.explain.attribution import Question, WordWeights, by_weight
from litotes.explain.explanation import Curve, Faithfulness
from litotes.text.tokenizer import Pieces

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Of the words, rounded up: every share above 0 is one word at least.

Both ends are the same for all methods and are not averaged over.
"""


def faithfulness(
    question: Question, orders: Mapping[str, Sequence[int]]
) -> dict[str, Faithfulness]:
    """Of several methods for one answer. orders: {method: the words' numbers, the most important
    one first}.
    """
    counts = [n_words(share, len(question.read.words)) for share in SHARES]
    deletions = {
        name: [question.without(order[:n]) for n in counts] for name, order in orders.items()
    }
    sufficiencies = {
        name: [question.without(order[n:]) for n in counts] for name, order in orders.items()
    }
    asked = _answered(
        question,
        (text for texts in (*deletions.values(), *sufficiencies.values()) for text in texts),
    )
    return {
        name: _faithfulness(
            [asked[_key(text)] for text in deletions[name]],
            [asked[_key(text)] for text in sufficiencies[name]],
        )
        for name in orders
    }


def n_words(share: float, n: int) -> int:
    """A share of n words, rounded up (0.1 of 30 is 3, whatever floating point says)."""
    return math.ceil(share * n - 1e-9)


_Key = tuple[tuple[int, ...], tuple[int, ...]]


def _key(text: Pieces) -> _Key:
    return tuple(text.ids), tuple(text.segments)


def _answered(question: Question, texts: Iterable[Pieces]) -> dict[_Key, float]:
    """How probable the answer is for every text; methods often agree on what to take away, so each
    is asked once.
    """
    different = {_key(text): text for text in texts}
    scores = question.scores(list(different.values()))
    # the share 0 takes nothing away
    whole = scores[list(different).index(_key(question.read.pieces))]
    # the scores are log odds
    values = whole - (scores - whole).abs() if question.task.is_regression else scores.sigmoid()
    return dict(zip(different, values.tolist(), strict=True))


def order_of(question: Question, weighed: WordWeights) -> tuple[int, ...]:
    """The words, the most important one first.

    A number has no side to speak for: there the size of a weight counts.
    """
    return by_weight(
        [abs(weight) for weight in weighed.weights]
        if question.task.is_regression
        else weighed.weights
    )


def _faithfulness(deleted: Sequence[float], kept: Sequence[float]) -> Faithfulness:
    whole, n_inner = deleted[0], len(SHARES) - 2
    return Faithfulness(
        deletion=Curve(SHARES, tuple(deleted)),
        sufficiency=Curve(SHARES, tuple(kept)),
        comprehensiveness=sum(whole - value for value in deleted[1:-1]) / n_inner,
        sufficiency_loss=sum(whole - value for value in kept[1:-1]) / n_inner,
    )
