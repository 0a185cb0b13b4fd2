"""Whether a method's words are those the answer rests on: they are taken away, or kept alone, and
the model is asked again.

DeYoung et al. 2020 (ERASER), arXiv 1911.03429, §4, with p the probability of the answer first given
(a regression: its value, less how far the new value is from it, whichever way it moves), x a text,
r_s the share s of its words that a method puts first:

    comprehensiveness = mean over s of p(x) − p(x without r_s)
    sufficiency loss  = mean over s of p(x) − p(r_s alone)

Words really leave: their pieces are gone from the packed text, the others close up, special pieces
stay. Words of a pair count alike. A signed method puts first what speaks most for the answer, and
last what speaks most against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from litotes.encoder.tokenizer import Pieces
from litotes.explanation.attribution import TextQuestion, WordWeights, by_weight
from litotes.explanation.explanation import Curve, Faithfulness

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Of the words, rounded up: every share above 0 is one word at least.

Both ends are the same for all methods and are not averaged over.
"""


def faithfulness(
    question: TextQuestion, orders: Mapping[str, Sequence[int]]
) -> dict[str, Faithfulness]:
    """Of several methods for one answer. orders: {method: the words' numbers, the most important
    one first}.
    """
    counts = [n_words(share, len(question.read.words)) for share in SHARES]
    deleted, kept = {}, {}  # {method: a text for each share}
    for name, order in orders.items():
        deleted[name] = [question.without(order[:n]) for n in counts]
        kept[name] = [question.without(order[n:]) for n in counts]
    answers = _ask(question, chain(*deleted.values(), *kept.values()))
    found = {}
    for name in orders:
        deletion = [answers[_key(text)] for text in deleted[name]]
        sufficiency = [answers[_key(text)] for text in kept[name]]
        found[name] = _faithfulness(deletion, sufficiency)
    return found


def n_words(share: float, n: int) -> int:
    """A share of n words, rounded up (0.1 of 30 is 3, whatever floating point says)."""
    return math.ceil(share * n - 1e-9)


_Key = tuple[tuple[int, ...], tuple[int, ...]]


def _key(text: Pieces) -> _Key:
    return tuple(text.ids), tuple(text.segments)


def _ask(question: TextQuestion, texts: Iterable[Pieces]) -> dict[_Key, float]:
    """How probable the answer is for every text; methods often agree on what to take away, so each
    text is asked about once.
    """
    different = {_key(text): text for text in texts}
    scores = question.scores(list(different.values()))  # log odds, or values of a regression
    if question.task.is_regression:
        # the share 0 takes nothing away
        whole = scores[list(different).index(_key(question.read.pieces))]
        values = whole - np.abs(scores - whole)
    else:
        values = np.exp(-np.logaddexp(0.0, -scores))  # (text,), from log odds
    return dict(zip(different, values.tolist(), strict=True))


def order_of(question: TextQuestion, found: WordWeights) -> tuple[int, ...]:
    """The words, the most important one first.

    A number has no side to speak for: there the size of a weight counts.
    """
    if question.task.is_regression:
        return by_weight([abs(weight) for weight in found.weights])
    return by_weight(found.weights)


def _faithfulness(deleted: Sequence[float], kept: Sequence[float]) -> Faithfulness:
    whole, n_inner = deleted[0], len(SHARES) - 2
    return Faithfulness(
        deletion=Curve(SHARES, tuple(deleted)),
        sufficiency=Curve(SHARES, tuple(kept)),
        comprehensiveness=sum(whole - value for value in deleted[1:-1]) / n_inner,
        sufficiency_loss=sum(whole - value for value in kept[1:-1]) / n_inner,
    )
