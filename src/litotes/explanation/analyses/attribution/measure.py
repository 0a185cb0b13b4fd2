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
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.numbers import Floats, format_signed, pearson, ranks
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.means import RunningMean, Table, table
from litotes.explanation.analyses.punctuation import is_plain_mark
from litotes.explanation.attribution import CONTROL, METHODS, Question, weigh_words
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

FEWEST = 5
"""Texts a word must occur in before its mean says anything."""

N_WORDS = 15
"""How many words are listed for each label."""

_ALIKE = 0.9995
"""A correlation above this is shown as 1.00."""

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

    def in_words(self) -> str:
        return f"{self.word} ({format_signed(self.weight, 2)} ± {self.half_width:.2f})"


@dataclass(frozen=True)
class Pushes(Result):
    """n_seen: the texts there were, of which the first `n_texts` were weighed.

    method: by which words are weighed; weights are in log odds of the label, for a regression in
    the answer's own unit.
    towards: {task: {label: words}}, the surest first: by the end of the interval that is nearer to
    0, and only where that is on the label's side; without full stops and the like. A regression has
    `higher` and `lower`.
    agreement: (method, method), the mean over `n_compared` texts of Spearman's correlation between
    the words' weights, in `compared`'s order, answers of the first task; where a method has no
    sign, of their sizes. None where too few texts tell their words apart by both methods.
    """

    n_seen: int
    method: str
    towards: Mapping[str, Mapping[str, tuple[Push, ...]]]
    compared: tuple[str, ...]
    agreement: Table
    agreement_half_width: Table
    n_compared: int

    def nothing_to_say(self) -> str | None:
        pushes = [words for labels in self.towards.values() for words in labels.values()]
        if any(pushes) or self._agreement_finding():
            return None
        return f"finds no word that occurs in {FEWEST} texts and pushes them all one way"

    def findings(self) -> tuple[str, ...]:
        said = []
        if self.n_seen > self.n_texts:
            said.append(f"Words were weighed in the first {self.n_texts} of {self.n_seen} texts.")
        for task, labels in self.towards.items():
            for label, words in labels.items():
                if words:
                    listed = ", ".join(push.in_words() for push in words[:6])
                    said.append(f"Towards {label} ({task}) push {listed}.")
        said += self._agreement_finding()
        return tuple(said) or (f"No word occurs in {FEWEST} texts and pushes them all one way.",)

    def _agreement_finding(self) -> list[str]:
        pairs = []
        for row, values in enumerate(self.agreement):
            for column, value in enumerate(values[:row]):
                # standard and effective attention are one method where texts are short
                if value is not None and value < _ALIKE:
                    pairs.append((value, self.compared[row], self.compared[column]))
        if not pairs:
            return []
        most, second, first = max(pairs)
        least, other_second, other_first = min(pairs)
        return [
            f"Over the words of a text the methods {first} and {second} agree most"
            f" (Spearman's correlation {most:.2f}, mean of up to {self.n_compared} texts),"
            f" {other_first} and {other_second} least ({least:.2f})."
        ]


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
        _check_signed(method)
        if compared is None:
            compared = [name for name in METHODS if name != CONTROL]
        for name in compared:
            pick(METHODS, name, "method")
        self.method, self.most_texts, self.most_compared = method, n_texts, n_compared
        self.compared = tuple(compared)
        self.agreement = RunningMean(len(self.compared), len(self.compared))
        # (task, label): {word: its weight}
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
            self._compare_methods(observation)

    def _compare_methods(self, observation: Observation) -> None:
        first_task = next(iter(self.model.classifier.tasks.values()))
        question = Question.about(self.model, observation, first_task)
        weights = {name: np.array(weigh_words(name, question).weights) for name in self.compared}
        rows = [[agreement(weights, one, other) for other in weights] for one in weights]
        self.agreement.add(torch.tensor(rows))

    def _weights(
        self, observation: Observation, task: Task
    ) -> Iterator[tuple[int, Sequence[float]]]:
        """The words' weights for each label asked about.

        Of two labels the answer is asked about, as other measures do, and turned if need be.
        """
        labels = _labels_asked(task)
        if len(task.labels) == 2:
            question = Question.about(self.model, observation, task)
            # log odds of one label are those of the other, turned
            sign = 1 if question.label == labels[0] else -1
            weights = weigh_words(self.method, question).weights
            yield labels[0], [sign * weight for weight in weights]
            return
        for label in labels:
            question = Question(self.model, observation, task, label)
            yield label, weigh_words(self.method, question).weights

    def result(self) -> Pushes:
        tasks = self.model.classifier.tasks.values()
        return Pushes(
            n_texts=self.n_texts,
            n_seen=self.n_seen,
            method=self.method,
            towards={task.name: self._towards(task) for task in tasks},
            compared=self.compared,
            agreement=table(self._of_enough_texts(self.agreement.mean)),
            agreement_half_width=table(self._of_enough_texts(self.agreement.half_width)),
            n_compared=self.n_compared,
        )

    def _of_enough_texts(self, values: Tensor) -> Tensor:
        fewest = FEWEST if self.n_compared >= FEWEST else 1
        return torch.where(self.agreement.n >= fewest, values, math.nan)

    def _towards(self, task: Task) -> dict[str, tuple[Push, ...]]:
        """Of two labels, or of a number, one is asked about; what pushes towards the other is what
        pushes away from it.
        """
        if len(task.labels) > 2 or task.multi_label:
            return {
                label: _surest(self.weights[task.name, place])
                for place, label in enumerate(task.labels)
            }
        no, yes = ("lower", "higher") if task.is_regression else task.labels
        weights = self.weights[task.name, _labels_asked(task)[0]]
        return {no: _surest(weights, sign=-1), yes: _surest(weights)}


def _check_signed(method: str) -> None:
    if not pick(METHODS, method, "method").is_signed:
        signed = ", ".join(name for name, kind in METHODS.items() if kind.is_signed)
        raise UserError(f"{method} does not say which way a word pushes. Choose one of {signed}.")


def _labels_asked(task: Task) -> Sequence[int]:
    """The labels whose log odds are explained."""
    if task.is_regression:
        return (0,)
    return (1,) if len(task.labels) == 2 and not task.multi_label else range(len(task.labels))


def _by_spelling(observation: Observation, weights: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Each different word of a text with the mean weight of its occurrences: a text counts once
    for a word.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for word, weight in zip(observation.read.words, weights, strict=True):
        found[word.written.casefold()].append(weight)
    for spelling, values in found.items():
        yield spelling, sum(values) / len(values)


def _surest(weights: Mapping[str, RunningMean], *, sign: int = 1) -> tuple[Push, ...]:
    sure = []
    for word, running in weights.items():
        if running.n >= FEWEST and not is_plain_mark(word):
            mean, half_width = sign * float(running.mean), float(running.half_width)
            if mean > half_width:
                sure.append(Push(word, mean, half_width, int(running.n)))
    sure.sort(key=lambda push: (push.half_width - push.weight, push.word))
    return tuple(sure[:N_WORDS])


def agreement(weights: Mapping[str, Floats], one: str, other: str) -> float:
    """Spearman's correlation over words, of signed weights where both methods have signs; NaN where
    one of them sees no difference.
    """
    left, right = weights[one], weights[other]
    if not (METHODS[one].is_signed and METHODS[other].is_signed):
        left, right = np.abs(left), np.abs(right)
    if len(left) < _FEWEST_WORDS or np.ptp(left) == 0 or np.ptp(right) == 0:
        return math.nan
    return float(pearson(ranks(left), ranks(right)))
