"""attribution: which words push towards which label over a corpus, and how far the methods agree
about single texts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from litotes.core.counts import Floats, pearson, ranks
from litotes.core.errors import UserError
from litotes.core.numbers import format_signed
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.explain.attribution import CONTROL, METHODS, Question, weigh_words
from litotes.explain.observation import Observation
from litotes.inside.analysis import Measure, Result
from litotes.inside.means import RunningMean, Table, table
from litotes.model.checkpoint import Model

FEWEST = 5
"""Texts a word must occur in before its mean says anything."""

N_WORDS = 15
"""How many words are told for each label."""

_FEWEST_WORDS = 3
"""Of a text, before a rank correlation over them says anything."""


@dataclass(frozen=True)
class Push:
    """A word (in lower case), its mean weight over the `n` texts it occurs in, and half of the 95 %
    interval of that mean.
    """

    word: str
    weight: float
    half_width: float
    n: int


@dataclass(frozen=True)
class Pushes(Result):
    """n_seen: the texts there were, of which the first `n_texts` were weighed.

    method: by which words are weighed; weights are in log odds of the label, for a regression in
    the answer's own unit.
    towards: {task: {label: words}}, the surest first: by the end of the interval that is nearer to
    0, and only where that is on the label's side. A regression has `higher` and `lower`.
    agreement: (method, method), the mean over `n_compared` texts of Spearman's correlation between
    the words' weights, in `compared`'s order, answers of the first task; where a method has no
    sign, of their sizes.
    """

    n_seen: int
    method: str
    towards: Mapping[str, Mapping[str, tuple[Push, ...]]]
    compared: tuple[str, ...]
    agreement: Table
    agreement_half_width: Table
    n_compared: int

    def findings(self) -> tuple[str, ...]:
        said = (
            [f"Words were weighed in the first {self.n_texts} of {self.n_seen} texts."]
            if self.n_seen > self.n_texts
            else []
        )
        said += [
            f"Towards {label} ({task}) push"
            f" {', '.join(f'{push.word} ({format_signed(push.weight, 2)} ± {push.half_width:.2f})' for push in words[:6])}."
            for task, labels in self.towards.items()
            for label, words in labels.items()
            if words
        ]
        pairs = [
            (value, self.compared[row], self.compared[column])
            for row, values in enumerate(self.agreement)
            for column, value in enumerate(values[:row])
            if value is not None
        ]
        if pairs:
            (least, *lower), (most, *upper) = min(pairs), max(pairs)
            said.append(
                f"Over the words of a text the methods {upper[1]} and {upper[0]} agree most"
                f" (Spearman's correlation {most:.2f}, mean of {self.n_compared} texts), {lower[1]}"
                f" and {lower[0]} least ({least:.2f})."
            )
        return tuple(said) or (f"No word occurs in {FEWEST} texts and pushes them all one way.",)


class AttributionMeasure(Measure):
    """Which words push towards which label, and how far the attribution methods agree.

    method: a signed one; gradient_input is twenty times as fast and far less faithful. n_texts,
    n_compared: the first so many are weighed by `method`, for every task, and by all methods
    compared, for the first task.
    compared: None: all but random words.
    """

    def __init__(
        self,
        model: Model,
        *,
        method: str = "integrated_gradients",
        n_texts: int = 100,
        n_compared: int = 50,
        compared: Sequence[str] | None = None,
    ) -> None:
        super().__init__(model)
        if not pick(METHODS, method, "method").is_signed:
            signed = ", ".join(name for name, kind in METHODS.items() if kind.is_signed)
            raise UserError(
                f"{method} does not say which way a word pushes. Choose one of {signed}."
            )
        self.compared = (
            tuple(name for name in METHODS if name != CONTROL)
            if compared is None
            else tuple(compared)
        )
        for name in self.compared:
            pick(METHODS, name, "method")
        self.method, self.most_texts, self.most_compared = method, n_texts, n_compared
        self.agreement = RunningMean(len(self.compared), len(self.compared))
        self.weights: defaultdict[tuple[str, int], defaultdict[str, RunningMean]] = defaultdict(
            lambda: defaultdict(RunningMean)
        )
        self.n_texts = self.n_seen = self.n_compared = 0

    def add(self, observation: Observation) -> None:
        self.n_seen += 1
        if self.n_texts == self.most_texts:
            return
        self.n_texts += 1
        if not observation.read.words:
            return
        for task in self.model.classifier.tasks.values():
            for label, weights in self._weights(observation, task):
                for word, mean in _by_spelling(observation, weights):
                    self.weights[task.name, label][word].add(mean)
        if self.n_compared < self.most_compared:
            self.n_compared += 1
            question = Question.about(
                self.model, observation, next(iter(self.model.classifier.tasks.values()))
            )
            weighed = {
                name: np.array(weigh_words(name, question).weights) for name in self.compared
            }
            self.agreement.add(
                torch.tensor(
                    [[agreement(weighed, one, other) for other in weighed] for one in weighed]
                )
            )

    def _weights(
        self, observation: Observation, task: Task
    ) -> Iterator[tuple[int, Sequence[float]]]:
        """For each label asked for the words' weights.

        Of two labels the answer is asked about, as others do, and turned if need be.
        """
        if len(task.labels) == 2:
            question = Question.about(self.model, observation, task)
            (asked,) = _asked(task)
            # log odds of one label are those of the other, turned
            sign = 1 if question.label == asked else -1
            yield asked, [sign * weight for weight in weigh_words(self.method, question).weights]
            return
        for label in _asked(task):
            yield (
                label,
                weigh_words(self.method, Question(self.model, observation, task, label)).weights,
            )

    def result(self) -> Pushes:
        return Pushes(
            n_texts=self.n_texts,
            n_seen=self.n_seen,
            method=self.method,
            towards={
                task.name: self._towards(task) for task in self.model.classifier.tasks.values()
            },
            compared=self.compared,
            agreement=table(self.agreement.mean),
            agreement_half_width=table(self.agreement.half_width),
            n_compared=self.n_compared,
        )

    def _towards(self, task: Task) -> dict[str, tuple[Push, ...]]:
        """Of two labels, or of a number, one is asked for; what pushes towards the other is what
        pushes away from it.
        """
        if len(task.labels) > 2:
            return {
                label: _surest(self.weights[task.name, place])
                for place, label in enumerate(task.labels)
            }
        no, yes = ("lower", "higher") if task.is_regression else task.labels
        (asked,) = _asked(task)
        return {
            no: _surest(self.weights[task.name, asked], sign=-1),
            yes: _surest(self.weights[task.name, asked]),
        }


def _asked(task: Task) -> Sequence[int]:
    """The labels whose log odds are explained."""
    if task.is_regression:
        return (0,)
    return (1,) if len(task.labels) == 2 else range(len(task.labels))


def _by_spelling(observation: Observation, weights: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Each different word of a text with the mean weight of its occurrences: one text has one say
    about a word.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for word, weight in zip(observation.read.words, weights, strict=True):
        found[word.written.casefold()].append(weight)
    yield from ((word, sum(values) / len(values)) for word, values in found.items())


def _surest(weights: Mapping[str, RunningMean], *, sign: int = 1) -> tuple[Push, ...]:
    known = [
        Push(word, sign * float(running.mean), float(running.half_width), int(running.n))
        for word, running in weights.items()
        if running.n >= FEWEST
    ]
    sure = [push for push in known if push.weight > push.half_width]
    return tuple(
        sorted(sure, key=lambda push: (push.half_width - push.weight, push.word))[:N_WORDS]
    )


def agreement(weighed: Mapping[str, Floats], one: str, other: str) -> float:
    """Spearman's correlation over words, of signed weights where both methods have signs; NaN where
    one of them sees no difference.
    """
    both_signed = METHODS[one].is_signed and METHODS[other].is_signed
    left, right = (weighed[name] if both_signed else np.abs(weighed[name]) for name in (one, other))
    if len(left) < _FEWEST_WORDS or np.ptp(left) == 0 or np.ptp(right) == 0:
        return math.nan
    return float(pearson(ranks(left), ranks(right)))
