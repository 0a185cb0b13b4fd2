"""How far the groups of a corpus lie apart in macro-F1, and how far they would by chance alone.

The groups of a small corpus always differ. `spread_by_chance` is the mean difference between the
best and the worst macro-F1 when the same texts are dealt to groups of the same sizes at random, and
`spread_p` the share of deals with a spread at least as large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litotes.core.counts import Counts, Floats, confusion, macro_f1
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
    scores, whole, n_classes = {}, [], len(result.task.labels)
    for name, own in parts.items():
        part = result.only(own)
        counts = confusion(part.gold(), part.predicted(), n_classes)
        if has_all_labels(counts):
            scores[name] = float(macro_f1(counts))
            whole.append(own)
    if len(scores) < 2:
        return
    worst, *_, best = sorted(scores, key=scores.__getitem__)
    spread = scores[best] - scores[worst]
    dealt = _dealt_spreads(result, whole, seed)
    yield Spread(
        task=result.task.name,
        column=column,
        worst=worst,
        best=best,
        spread=spread,
        spread_by_chance=float(dealt.mean()),
        spread_p=float((1 + (dealt >= spread - 1e-12).sum()) / (1 + len(dealt))),
    )


def _dealt_spreads(result: TaskPredictions, parts: Sequence[Sequence[bool]], seed: int) -> Floats:
    """The spread when texts are dealt at random. (deal,)"""
    n_classes = len(result.task.labels)
    # (text,): its place in the confusion counts, of the texts of all these groups
    is_in = np.any(parts, axis=0)
    place = (result.gold() * n_classes + result.predicted())[is_in]
    ends = np.cumsum([sum(own) for own in parts])[:-1]
    generator = np.random.default_rng(seed)
    spreads = []
    for n_deals in split_draws(_N_DEALS, len(place)):
        dealt = generator.permuted(np.tile(place, (n_deals, 1)), axis=1)  # (deal, text)
        scores = []
        for hand in np.split(dealt, ends, axis=1):
            counts = [(hand == cell).sum(1) for cell in range(n_classes**2)]  # (deal,) each
            scores.append(macro_f1(np.stack(counts, axis=1).reshape(-1, n_classes, n_classes)))
        spreads.append(np.ptp(scores, axis=0))
    return np.concatenate(spreads)
