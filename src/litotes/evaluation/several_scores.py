"""Scores of tasks with several labels for one text.

    micro-F1          2·tp / (2·tp + fp + fn) over all labels together
    macro-F1          the mean over labels of each one's own F1; labels that neither occur nor are
                      given are left out
    subset accuracy   the share of texts whose labels are all right, and no other is given

The bootstrap draws texts with replacement: what a text adds to each count is drawn with it. Where
all labels of all texts are right, the lower ends are F1 if `unseen_share` of each label's texts had
another instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats
from litotes.core.text import one_line
from litotes.core.values import Task
from litotes.evaluation.scores import N_RESAMPLES, ClassScores, interval, unseen_share

_AT_ONCE = 50
"""Resamples that are counted together, so that memory stays small."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SeveralScores:
    """A task with several labels on one set of texts.

    interval: 95 % interval of macro-F1; micro_interval: of micro-F1. majority: macro-F1
    of always giving the commonest set of labels here.
    """

    task: str
    n: int
    macro_f1: float
    interval: tuple[float, float]
    majority: float
    micro_f1: float
    micro_interval: tuple[float, float]
    subset_accuracy: float
    classes: tuple[ClassScores, ...]

    def __repr__(self) -> str:
        return one_line(self, **self.headline())

    def headline(self) -> dict[str, Any]:
        """The score to look at first, with its interval."""
        numbers = {"macro_f1": self.macro_f1, "interval": self.interval, "majority": self.majority}
        return {"task": self.task, "n": self.n, **numbers}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def score_several(gold: Flags, given: Flags, task: Task, *, seed: int = 0) -> SeveralScores:
    """gold, given: which labels a text has, (text, class) both."""
    parts = _parts(gold, given)  # (kind, text, class): hits, given, gold
    counts = parts.sum(1)  # (kind, class)
    among = counts[1] + counts[2] > 0
    macro, micro = _resample(parts, among, seed)
    constant = np.broadcast_to(_commonest(gold), gold.shape)
    return SeveralScores(
        task=task.name,
        n=len(gold),
        macro_f1=float(macro_f1_of(counts, among)),
        interval=_interval(macro, gold, given),
        majority=float(macro_f1_of(_parts(gold, constant).sum(1))),
        micro_f1=float(micro_f1_of(counts)),
        micro_interval=_interval(micro, gold, given),
        subset_accuracy=float((gold == given).all(1).mean()),
        classes=tuple(_class_scores(label, counts[:, at]) for at, label in enumerate(task.labels)),
    )


def macro_f1_of(counts: NDArray[Any], among: Flags | None = None) -> Floats:
    """Counts (…, kind, class) of hits, given and gold → (…); among: the labels to average over."""
    hits, seen = counts[..., 0, :], counts[..., 1, :] + counts[..., 2, :]
    f1 = np.divide(2 * hits, seen, out=np.zeros(hits.shape), where=seen > 0)
    counted = seen > 0 if among is None else np.broadcast_to(among, seen.shape)
    return np.asarray((f1 * counted).sum(-1) / np.maximum(counted.sum(-1), 1))


def micro_f1_of(counts: NDArray[Any]) -> Floats:
    """Counts (…, kind, class) → (…); 0 where no label occurs or is given."""
    hits, given, gold = np.moveaxis(counts.sum(-1), -1, 0)
    seen = np.asarray(given + gold)
    return np.divide(2 * hits, seen, out=np.zeros(seen.shape), where=seen > 0)


def _parts(gold: Flags, given: Flags) -> NDArray[np.float64]:
    return np.stack([gold & given, given, gold]).astype(np.float64)


def _commonest(gold: Flags) -> Flags:
    """The set of labels that most texts have; of equally common ones that with the fewest, then
    with the first labels, in whatever order the texts come. (class,)
    """
    sets = Counter(map(tuple, gold.tolist()))
    return np.array(max(sets, key=lambda own: (sets[own], -sum(own), own)), dtype=np.bool_)


def _resample(parts: NDArray[Any], among: Flags, seed: int) -> tuple[Floats, Floats]:
    """Macro-F1 and micro-F1 of resampled texts, (resample,) both."""
    n_texts = parts.shape[1]
    generator, macro, micro = np.random.default_rng(seed), [], []
    for _ in range(N_RESAMPLES // _AT_ONCE):
        times = generator.multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=_AT_ONCE)
        counts = np.einsum("rt,ktc->rkc", times, parts, optimize=True)  # (resample, kind, class)
        macro.append(macro_f1_of(counts, among))
        micro.append(micro_f1_of(counts))
    return np.concatenate(macro), np.concatenate(micro)


def _interval(values: Floats, gold: Flags, given: Flags) -> tuple[float, float]:
    """The middle 95 % of the resamples. values (resample,)"""
    low, high = interval(values)
    if (gold == given).all():
        low *= 1 - unseen_share(len(gold))
    return low, high


def _class_scores(label: str, counts: NDArray[Any]) -> ClassScores:
    hits, given, gold = counts.tolist()
    return ClassScores(
        label=label,
        n=int(gold),
        precision=hits / given if given else 0.0,
        recall=hits / gold if gold else 0.0,
        f1=2 * hits / (given + gold) if given + gold else 0.0,
    )
