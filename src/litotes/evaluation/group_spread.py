"""How far the groups of a corpus lie apart in macro-F1, and how far they would by chance alone.

The groups of a small corpus always differ. `spread_by_chance` is the mean difference between the
best and the worst macro-F1 when the same texts are dealt to groups of the same sizes at random, and
`spread_p` the share of deals with a spread at least as large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats, confusion, macro_f1
from litotes.evaluation.answer_patterns import split_draws
from litotes.evaluation.evaluate import TaskPredictions

FEWEST = 10
"""Texts of a group, and of all others, that are compared; for macro-F1 and recall, texts of each
label. Fewer show nothing.
"""
_N_DEALS = 2000


@dataclass(frozen=True)
class Spread:
    """How far the groups of a column lie apart in macro-F1."""

    task: str
    column: str
    worst: str
    best: str
    spread: float
    spread_by_chance: float
    spread_p: float


def has_all_labels(counts: Counts) -> bool:
    """Macro-F1 over another set of labels, or with an F1 of a few texts, compares with nothing."""
    return int(counts.sum(1).min()) >= FEWEST


def find_spread(
    result: TaskPredictions, parts: Mapping[str, Sequence[bool]], column: str, *, seed: int
) -> Iterator[Spread]:
    """That of the groups with enough texts of each label; of fewer than two there is none.

    parts: which texts each group has.
    """
    answers = MeanAnswers(result.gold(), result.predicted()[None], len(result.task.labels))
    return find_mean_spread(answers, parts, task=result.task.name, column=column, seed=seed)


@dataclass(frozen=True)
class MeanAnswers:
    """gold (text,) and the answers of one or several models, predicted (model, text), whose scores
    are averaged.
    """

    gold: Counts
    predicted: Counts
    n_classes: int

    def macro_f1(self, own: NDArray[np.bool_]) -> float | None:
        """Of some texts; None where a label has too few of them. own (text,)"""
        gold = self.gold[own]
        counts = [confusion(gold, one[own], self.n_classes) for one in self.predicted]
        if not has_all_labels(counts[0]):
            return None
        return float(macro_f1(np.stack(counts)).mean())


def find_mean_spread(
    answers: MeanAnswers,
    parts: Mapping[str, Sequence[bool]],
    *,
    task: str,
    column: str,
    seed: int,
) -> Iterator[Spread]:
    """`find_spread` for the mean over models; all answers to a text are dealt together."""
    scores, whole = {}, []
    for name, own in parts.items():
        score = answers.macro_f1(np.asarray(own))
        if score is not None:
            scores[name] = score
            whole.append(own)
    if len(scores) < 2:
        return
    worst, *_, best = sorted(scores, key=scores.__getitem__)
    spread = scores[best] - scores[worst]
    dealt = _dealt_spreads(answers, whole, seed)
    yield Spread(
        task=task,
        column=column,
        worst=worst,
        best=best,
        spread=spread,
        spread_by_chance=float(dealt.mean()),
        spread_p=float((1 + (dealt >= spread - 1e-12).sum()) / (1 + len(dealt))),
    )


def _dealt_spreads(answers: MeanAnswers, parts: Sequence[Sequence[bool]], seed: int) -> Floats:
    """The spread when texts are dealt at random. (deal,)"""
    # (model, text): its place in the confusion counts, of the texts of all these groups
    is_in = np.any(parts, axis=0)
    places = (answers.gold * answers.n_classes + answers.predicted)[:, is_in]
    ends = np.cumsum([sum(own) for own in parts])[:-1]
    generator = np.random.default_rng(seed)
    spreads = []
    for n_deals in split_draws(_N_DEALS, places.shape[1]):
        order = np.tile(np.arange(places.shape[1]), (n_deals, 1))
        order = generator.permuted(order, axis=1)  # (deal, text)
        scores = np.zeros((len(parts), n_deals))  # (group, deal)
        for place in places:
            for group, hand in enumerate(np.split(place[order], ends, axis=1)):
                scores[group] += _dealt_scores(hand, answers.n_classes) / len(places)
        spreads.append(np.ptp(scores, axis=0))
    return np.concatenate(spreads)


def _dealt_scores(hand: Counts, n_classes: int) -> Floats:
    """Macro-F1 of every deal. (deal, text) → (deal,)"""
    counts = [(hand == cell).sum(1) for cell in range(n_classes**2)]  # (deal,) each
    return macro_f1(np.stack(counts, axis=1).reshape(-1, n_classes, n_classes))
