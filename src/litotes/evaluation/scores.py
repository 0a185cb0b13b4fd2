"""Scores, each with its interval, its majority line and a warning when the model has collapsed.

Everything follows from the confusion counts. The bootstrap draws texts with replacement, which for
counts is a multinomial draw: 2,000 resamples cost milliseconds. It knows nothing of mistakes that
it has not seen: where no text is wrong, or none right, that end of the interval is Clopper and
Pearson's (`with_unseen`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats, classes_of, confusion, macro_f1, pearson, ranks
from litotes.core.text import one_line
from litotes.core.values import Task

N_RESAMPLES = 2000

Bools = NDArray[np.bool_]
Interval = tuple[float, float]
Json = dict[str, Any]


class Result:
    """A value that is kept as JSON and prints as one line. shown: what that line says."""

    shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return one_line(self, **self.headline())

    def headline(self) -> Json:
        return {name: getattr(self, name) for name in self.shown}

    def as_json(self) -> Json:
        content: Json = plain(self)
        return content


def plain(value: Any) -> Any:
    """Makes JSON of a value: a dataclass becomes its fields, and what else its `derived` names."""
    if is_dataclass(value):
        names = [*(one.name for one in fields(value)), *getattr(value, "derived", ())]
        return {name.removeprefix("is_"): plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True)
class ClassScores:
    """One class: how many texts have it, how well it is found."""

    label: str
    n: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, repr=False)
class Scores(Result):
    """A classification task on one set of texts.

    interval: 95 % interval of macro-F1 (`f1_interval`); majority: macro-F1 of always answering the
    commonest label here; collapsed_to: the label, when the model gave the same one to every text
    although several occur; calibration_error: ECE (`reliability.py`) of the probabilities of the
    labels given, risk_area: the area under their risk-coverage curve; None where only labels are
    known.
    """

    shown = ("task", "n", "macro_f1", "interval", "majority")
    task: str
    n: int
    macro_f1: float
    interval: Interval
    majority: float
    accuracy: float
    matthews: float
    classes: tuple[ClassScores, ...]
    collapsed_to: str | None
    calibration_error: float | None = None
    risk_area: float | None = None


@dataclass(frozen=True, repr=False)
class RegressionScores(Result):
    """A regression task; `interval` is that of Pearson's r."""

    shown = ("task", "n", "pearson", "interval")
    task: str
    n: int
    pearson: float
    interval: Interval
    spearman: float
    root_mean_squared_error: float


@dataclass(frozen=True, repr=False)
class SeveralScores(Result):
    """A task with several labels on one set of texts.

    interval: 95 % interval of macro-F1; micro_interval: of micro-F1. majority: macro-F1
    of always giving the most frequent set of labels here.
    """

    shown = Scores.shown
    task: str
    n: int
    macro_f1: float
    interval: Interval
    majority: float
    micro_f1: float
    micro_interval: Interval
    subset_accuracy: float
    classes: tuple[ClassScores, ...]


def score(
    gold: Sequence[int] | Counts, predicted: Sequence[int] | Counts, task: Task, *, seed: int = 0
) -> Scores:
    """Scores of class numbers against the gold ones."""
    counts = confusion(gold, predicted, len(task.labels))
    hits, by_answer, by_gold = counts.diagonal(), counts.sum(0), counts.sum(1)  # (class,)
    n = int(counts.sum())
    given = np.flatnonzero(by_answer)
    collapsed = len(given) == 1 < np.count_nonzero(by_gold)
    return Scores(
        task=task.name,
        n=n,
        macro_f1=float(macro_f1(counts)),
        interval=f1_interval(counts, seed=seed),
        majority=majority_f1(by_gold),
        accuracy=float(hits.sum() / n),
        matthews=matthews(counts),
        classes=class_scores(task.labels, hits, by_answer, by_gold),
        collapsed_to=task.labels[int(given[0])] if collapsed else None,
    )


def class_scores(labels: Sequence[str], *parts: NDArray[Any]) -> tuple[ClassScores, ...]:
    """parts: how many texts are found, given and gold, (class,) each."""
    found = []
    for label, hits, given, gold in zip(labels, *(part.tolist() for part in parts), strict=True):
        precision, recall = hits / given if given else 0.0, hits / gold if gold else 0.0
        f1 = 2 * hits / (given + gold) if given + gold else 0.0
        found.append(ClassScores(label, int(gold), precision, recall, f1))
    return tuple(found)


def majority_f1(by_gold: Counts) -> float:
    """Macro-F1 of always answering the most frequent label. by_gold: texts of each (class,)"""
    most, n = int(by_gold.max()), int(by_gold.sum())
    return 2 * most / (most + n) / int(np.count_nonzero(by_gold))


def interval(values: Floats) -> Interval:
    """The middle 95 % of the values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def f1_interval(counts: Counts, *, seed: int) -> Interval:
    """The 95 % interval of macro-F1 over texts, by drawing texts with replacement."""
    n = int(counts.sum())
    draws = np.random.default_rng(seed).multinomial(n, counts.ravel() / n, size=N_RESAMPLES)
    drawn = macro_f1(draws.reshape(-1, *counts.shape), classes_of(counts))  # (resample,)
    return with_unseen(interval(drawn), counts)


def unseen_share(n: int) -> float:
    """Computes the share that n texts may not show at all: 0 of n are seen with a chance of 2.5 %.

    0.025 = (1 − share)ⁿ, the end of Clopper and Pearson's 95 % interval (1934).
    """
    return float(1 - 0.025 ** (1 / n))


def with_unseen(ends: Interval, counts: NDArray[Any]) -> Interval:
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


# Scores of tasks with several labels for one text.
#
#     micro-F1          2·tp / (2·tp + fp + fn) over all labels together
#     macro-F1          the mean over labels of each one's own F1; labels that neither occur nor
#                       are given are left out
#     subset accuracy   the share of texts whose labels are all right, and no other is given
#
# The bootstrap draws texts with replacement: what a text adds to each count is drawn with it.
# Where all labels of all texts are right, the lower ends are F1 if `unseen_share` of each label's
# texts had another instead.

_AT_ONCE = 50
"""Resamples that are counted together, so that memory stays small."""


def score_several(gold: Bools, given: Bools, task: Task, *, seed: int = 0) -> SeveralScores:
    """gold, given: which labels a text has, (text, class) both."""
    n_texts = len(gold)
    parts = _parts(gold, given)  # (kind, text, class)
    counts = parts.sum(1)  # (kind, class)
    among = counts[1] + counts[2] > 0
    generator = np.random.default_rng(seed)
    drawn = []
    for _ in range(N_RESAMPLES // _AT_ONCE):
        times = generator.multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=_AT_ONCE)
        resampled = np.einsum("rt,ktc->rkc", times, parts, optimize=True)  # (resample, kind, class)
        drawn.append((macro_f1_of(resampled, among), _micro_f1_of(resampled)))
    ends = [interval(values) for values in np.concatenate(drawn, axis=1)]
    if (gold == given).all():
        ends = [(low * (1 - unseen_share(n_texts)), high) for low, high in ends]
    # the set of labels that most texts have; of equally common ones that with the fewest, then with
    # the first labels, in whatever order the texts come
    sets = Counter(map(tuple, gold.tolist()))
    commonest = np.array(max(sets, key=lambda own: (sets[own], -sum(own), own)))  # (class,)
    return SeveralScores(
        task=task.name,
        n=n_texts,
        macro_f1=float(macro_f1_of(counts, among)),
        interval=ends[0],
        majority=float(macro_f1_of(_parts(gold, commonest | np.zeros_like(gold)).sum(1))),
        micro_f1=float(_micro_f1_of(counts)),
        micro_interval=ends[1],
        subset_accuracy=float((gold == given).all(1).mean()),
        classes=class_scores(task.labels, *counts),
    )


def macro_f1_of(counts: NDArray[Any], among: Bools | None = None) -> Floats:
    """Counts (…, kind, class) of hits, given and gold → (…); among: the labels to average over."""
    hits, seen = counts[..., 0, :], counts[..., 1, :] + counts[..., 2, :]
    f1 = np.divide(2 * hits, seen, out=np.zeros(hits.shape), where=seen > 0)
    counted = seen > 0 if among is None else np.broadcast_to(among, seen.shape)
    return np.asarray((f1 * counted).sum(-1) / np.maximum(counted.sum(-1), 1))


def _micro_f1_of(counts: NDArray[Any]) -> Floats:
    """Computes the F1 of all labels as one: counts (…, kind, class) → (…)"""
    return macro_f1_of(counts.sum(-1, keepdims=True))


def _parts(gold: Bools, given: Bools) -> NDArray[np.float64]:
    """Computes what each text adds to the counts of hits, given and gold. (kind, text, class)"""
    return np.stack([gold & given, given, gold]).astype(np.float64)
