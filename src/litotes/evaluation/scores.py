"""Scores, each with its interval, its majority line and a warning when the model has collapsed.

Everything follows from the confusion counts. The bootstrap draws texts with replacement, which for
counts is a multinomial draw: 2,000 resamples cost milliseconds. It knows nothing of mistakes that
it has not seen: where no text is wrong, or none right, that end of the interval is Clopper and
Pearson's (`with_unseen`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats, classes_of, confusion, macro_f1, pearson, ranks
from litotes.core.text import one_line
from litotes.core.values import Task

N_RESAMPLES = 2000


@dataclass(frozen=True)
class ClassScores:
    """One class: how many texts have it, how well it is found."""

    label: str
    n: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Scores:
    """A classification task on one set of texts.

    interval: 95 % interval of macro-F1 (`f1_interval`); majority: macro-F1 of always answering the
    commonest label here; collapsed_to: the label, when the model gave the same one to every text
    although several occur; calibration_error: ECE (`reliability.py`) of the probabilities of the
    labels given, risk_area: the area under their risk-coverage curve (`risk_coverage.py`); None
    where only labels are known.
    """

    task: str
    n: int
    macro_f1: float
    interval: tuple[float, float]
    majority: float
    accuracy: float
    matthews: float
    classes: tuple[ClassScores, ...]
    collapsed_to: str | None
    calibration_error: float | None = None
    risk_area: float | None = None

    def __repr__(self) -> str:
        return one_line(self, **self.headline())

    def headline(self) -> dict[str, Any]:
        """The score to look at first, with its interval."""
        numbers = {"macro_f1": self.macro_f1, "interval": self.interval, "majority": self.majority}
        return {"task": self.task, "n": self.n, **numbers}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RegressionScores:
    """A regression task; `interval` is that of Pearson's r."""

    task: str
    n: int
    pearson: float
    interval: tuple[float, float]
    spearman: float
    root_mean_squared_error: float

    def __repr__(self) -> str:
        return one_line(self, **self.headline())

    def headline(self) -> dict[str, Any]:
        """The score to look at first, with its interval."""
        numbers = {"pearson": self.pearson, "interval": self.interval}
        return {"task": self.task, "n": self.n, **numbers}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def score(
    gold: Sequence[int] | Counts, predicted: Sequence[int] | Counts, task: Task, *, seed: int = 0
) -> Scores:
    """Scores of class numbers against the gold ones."""
    counts = confusion(gold, predicted, len(task.labels))
    n = int(counts.sum())
    labels = enumerate(task.labels)
    return Scores(
        task=task.name,
        n=n,
        macro_f1=float(macro_f1(counts)),
        interval=f1_interval(counts, seed=seed),
        majority=float(macro_f1(constant(counts.sum(1)))),
        accuracy=float(np.trace(counts) / n),
        matthews=matthews(counts),
        classes=tuple(_class_scores(counts, number, label) for number, label in labels),
        collapsed_to=_collapsed_to(counts, task),
    )


def _collapsed_to(counts: Counts, task: Task) -> str | None:
    """The only label given, although several occur."""
    given = np.flatnonzero(counts.sum(0))
    several = (counts.sum(1) > 0).sum() > 1
    return task.labels[int(given[0])] if len(given) == 1 and several else None


def bootstrap(counts: Counts, *, seed: int, n_resamples: int = N_RESAMPLES) -> Floats:
    """Macro-F1 of resampled texts. (resample,)"""
    n = int(counts.sum())
    draws = np.random.default_rng(seed).multinomial(n, counts.ravel() / n, size=n_resamples)
    return macro_f1(draws.reshape(n_resamples, *counts.shape), classes_of(counts))


def interval(values: Floats) -> tuple[float, float]:
    """The middle 95 % of the values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def f1_interval(counts: Counts, *, seed: int) -> tuple[float, float]:
    """The 95 % interval of macro-F1 over texts."""
    return with_unseen(interval(bootstrap(counts, seed=seed)), counts)


def unseen_share(n: int) -> float:
    """What n texts may not show at all: the share of which 0 of n are seen with a chance of 2.5 %.

    0.025 = (1 − share)ⁿ, the end of Clopper and Pearson's 95 % interval (1934).
    """
    return float(1 - 0.025 ** (1 / n))


def with_unseen(ends: tuple[float, float], counts: NDArray[Any]) -> tuple[float, float]:
    """The bootstrap's interval; where no text is wrong, its lower end is macro-F1 if
    `unseen_share` of them were, and where none is right its upper end if so many were.

    counts (gold, predicted)
    """
    n, n_right = float(counts.sum()), float(np.trace(counts))
    if n_right == n:
        return unseen_fall(counts), ends[1]
    if n_right:
        return ends
    share = unseen_share(int(n))
    right = np.diag(counts.sum(1))
    return ends[0], float(macro_f1((1 - share) * counts + share * right, classes_of(counts)))


def unseen_fall(counts: NDArray[Any]) -> float:
    """Macro-F1 if `unseen_share` of the right answers to each label were other labels, any of them
    as often. counts (gold, predicted)
    """
    share = unseen_share(round(float(counts.sum())))
    right = np.diag(np.diagonal(counts))
    wrong = (np.diagonal(counts)[:, None] - right) / max(len(counts) - 1, 1)
    return float(macro_f1(counts + share * (wrong - right), classes_of(counts)))


def constant(per_gold: Counts) -> Counts:
    """Confusion counts of a model that always answers the commonest label."""
    counts = np.zeros((len(per_gold), len(per_gold)), dtype=np.int64)
    counts[:, int(per_gold.argmax())] = per_gold
    return counts


def matthews(counts: Counts) -> float:
    """Matthews correlation for any number of classes (Gorodkin 2004); 0 if one side is constant."""
    n, hits = float(counts.sum()), float(np.trace(counts))
    gold, predicted = counts.sum(1).astype(float), counts.sum(0).astype(float)
    spread = np.sqrt(n**2 - predicted @ predicted) * np.sqrt(n**2 - gold @ gold)
    return float((hits * n - gold @ predicted) / spread) if spread else 0.0


def score_regression(
    gold: Floats, predicted: Floats, task: Task, *, seed: int = 0
) -> RegressionScores:
    """Pearson's r with its interval, Spearman's rank correlation, root mean squared error."""
    gold, predicted = np.asarray(gold, float), np.asarray(predicted, float)
    places = np.random.default_rng(seed).integers(0, len(gold), size=(N_RESAMPLES, len(gold)))
    return RegressionScores(
        task=task.name,
        n=len(gold),
        pearson=float(pearson(gold, predicted)),
        interval=interval(pearson(gold[places], predicted[places])),
        spearman=float(pearson(ranks(gold), ranks(predicted))),
        root_mean_squared_error=float(np.sqrt(np.mean((gold - predicted) ** 2))),
    )


def _class_scores(counts: Counts, number: int, label: str) -> ClassScores:
    hits = counts[number, number]
    n_gold, n_predicted = counts[number].sum(), counts[:, number].sum()
    return ClassScores(
        label=label,
        n=int(n_gold),
        precision=float(hits / n_predicted) if n_predicted else 0.0,
        recall=float(hits / n_gold) if n_gold else 0.0,
        f1=float(2 * hits / (n_gold + n_predicted)) if n_gold + n_predicted else 0.0,
    )


# Scores of tasks with several labels for one text.
#
#     micro-F1          2·tp / (2·tp + fp + fn) over all labels together
#     macro-F1          the mean over labels of each one's own F1; labels that neither occur nor
#     are
#                       given are left out
#     subset accuracy   the share of texts whose labels are all right, and no other is given
#
# The bootstrap draws texts with replacement: what a text adds to each count is drawn with it.
# Where
# all labels of all texts are right, the lower ends are F1 if `unseen_share` of each label's texts
# had
# another instead.

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
        classes=tuple(_label_scores(label, counts[:, at]) for at, label in enumerate(task.labels)),
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


def _label_scores(label: str, counts: NDArray[Any]) -> ClassScores:
    hits, given, gold = counts.tolist()
    return ClassScores(
        label=label,
        n=int(gold),
        precision=hits / given if given else 0.0,
        recall=hits / gold if gold else 0.0,
        f1=2 * hits / (given + gold) if given + gold else 0.0,
    )
