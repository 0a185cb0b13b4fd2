"""Do the sets of labels hold the truth as often as promised, and what does that cost?

    coverage   the share of texts whose set holds the gold label
    unsure     the share of texts whose set holds several labels, or none
    accuracy   the share of right labels among all other texts

Each share has the exact binomial interval of Clopper & Pearson (1934): the set of a text is right
or wrong like the toss of a coin, once the bounds are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.core.text import one_line
from litotes.data.corpus import Corpus
from litotes.evaluation.evaluate import TaskPredictions, split_by_cell

_N_HALVINGS = 50


@dataclass(frozen=True)
class Share:
    """n_hits of n texts, with the 95 % interval. value: None where there is no text."""

    n_hits: int
    n: int
    value: float | None
    interval: tuple[float, float]


@dataclass(frozen=True)
class SetCoverage:
    """The sets of one task in one cell. by_label: the coverage of the texts that have each label;
    the promise is about all of them together, and a rare label may pay for a common one.
    """

    task: str
    cell: str
    promised: float
    coverage: Share
    unsure: Share
    n_several: int
    n_none: int
    accuracy: Share
    by_label: Mapping[str, Share]

    def __repr__(self) -> str:
        return one_line(self, task=self.task, cell=self.cell, coverage=self.coverage.value)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def binomial_share(n_hits: int, n: int) -> Share:
    """With the interval of Clopper and Pearson: the shares at which so few, or so many, hits come
    with a chance of 2.5 % each.
    """
    if not n:
        return Share(0, 0, None, (0.0, 1.0))
    low = _chance_at(n_hits, n, 0.025) if n_hits else 0.0
    high = _chance_at(n_hits + 1, n, 0.975) if n_hits < n else 1.0
    return Share(n_hits, n, n_hits / n, (low, high))


def _chance_at(k: int, n: int, tail: float) -> float:
    """The chance of a hit at which k hits or more of n come with the probability `tail`; which
    grows with the chance, so halving the interval cannot go wrong.
    """
    counts = np.arange(n + 1)
    logs = np.concatenate([[0.0], np.log(counts[1:])]).cumsum()  # log k!
    ways = logs[n] - logs[k:] - logs[n - counts[k:]]  # (hits,): log of n over hits
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        logged = counts[k:] * np.log(middle) + (n - counts[k:]) * np.log1p(-middle)
        is_above = float(np.exp(ways + logged).sum()) > tail
        low, high = (low, middle) if is_above else (middle, high)
    return (low + high) / 2


def set_coverages(
    predictions: Mapping[str, TaskPredictions], corpus: Corpus
) -> tuple[SetCoverage, ...]:
    """Of every task whose answers have sets: over all texts, then by cell."""
    return tuple(_rows(predictions, corpus))


def _rows(predictions: Mapping[str, TaskPredictions], corpus: Corpus) -> Iterator[SetCoverage]:
    for result in predictions.values():
        if result.task.coverage is None:
            continue
        for cell, part in split_by_cell(result, corpus):
            yield _measure(cell, part, result.task.coverage)


def _measure(cell: str, part: TaskPredictions, promised: float) -> SetCoverage:
    gold = [str(example.labels[part.task.name]) for example in part.examples]
    sets = [answer.labels or () for answer in part.answers]
    holds = [own in labels for own, labels in zip(gold, sets, strict=True)]
    sure = [own == labels[0] for own, labels in zip(gold, sets, strict=True) if len(labels) == 1]
    by_label = {}
    for label in part.task.labels:
        of_label = [held for own, held in zip(gold, holds, strict=True) if own == label]
        by_label[label] = binomial_share(sum(of_label), len(of_label))
    n_none = sum(not labels for labels in sets)
    n_several = len(sets) - len(sure) - n_none
    return SetCoverage(
        task=part.task.name,
        cell=cell,
        promised=promised,
        coverage=binomial_share(sum(holds), len(holds)),
        unsure=binomial_share(n_several + n_none, len(sets)),
        n_several=n_several,
        n_none=n_none,
        accuracy=binomial_share(sum(sure), len(sure)),
        by_label=by_label,
    )
