"""attribution: which words push towards which label over a corpus, and how far the methods agree
about single texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from litotes.core.errors import UserError
from litotes.core.figures import INK, text_colour
from litotes.core.numbers import Floats, pearson, ranks
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.explanation.analyses.analysis import (
    Analysis,
    Means,
    Result,
    RunningMean,
    Table,
    is_plain_mark,
    plain,
)
from litotes.explanation.analyses.drawing import (
    LETTER_WIDTH,
    Box,
    Canvas,
    NamedMean,
    in_rows,
    new_canvas,
    ranking_height,
)
from litotes.explanation.attribution import CONTROL, METHODS, Question, weigh_words
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 5
"""Texts a word must occur in before its mean says anything."""

N_WORDS = 15
"""How many words are listed for each label."""

_ALIKE = 0.9995
"""A correlation above this is shown as 1.00."""

_FEWEST_WORDS = 3
"""Of a text, before a rank correlation over them says anything."""

_WIDTH = 9.6  # inches
_CELL = 0.46  # inches: a number of two decimals fits into it


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
    0, and only where that is on the label's side; without full stops and the like. A regression has
    `higher` and `lower`.
    agreement: (method, method), the mean over `n_compared` texts of Spearman's correlation between
    the words' weights, in `compared`'s order, answers of the first task; where a method has no
    sign, of their sizes. None where too few texts tell their words apart by both methods.
    """

    name: ClassVar[str] = "attribution"
    fewest: ClassVar[int] = FEWEST
    most_words: ClassVar[int] = N_WORDS
    n_seen: int
    method: str
    towards: Mapping[str, Mapping[str, tuple[Push, ...]]]
    compared: tuple[str, ...]
    agreement: Table
    agreement_half_width: Table
    n_compared: int

    def nothing_to_say(self) -> str | None:
        if self.pairs or any(words for _, _, words in self.lists()):
            return None
        return f"finds no word that occurs in {FEWEST} texts and pushes them all one way"

    def highlights(self) -> tuple[str, ...]:
        return self.findings()[:2]

    def lists(self) -> Iterator[tuple[str, str, tuple[Push, ...]]]:
        """(task, label, the words that push towards it)"""
        for task, labels in self.towards.items():
            for label, words in labels.items():
                yield task, label, words

    @property
    def pairs(self) -> list[tuple[float, str, str]]:
        """The agreement of every two methods, the least first; standard and effective attention are
        one method where texts are short.
        """
        found = []
        for row, values in enumerate(self.agreement):
            for column, value in enumerate(values[:row]):
                if value is not None and value < _ALIKE:
                    found.append((value, self.compared[row], self.compared[column]))
        return sorted(found)

    def figure(self) -> Figure:
        """The words that push surely towards each label, with their intervals, two labels in a row;
        then how far the methods agree.
        """
        panels = list(self.lists())
        rows = [panels[start : start + 2] for start in range(0, len(panels), 2)]
        heights = [ranking_height(max(2, *(len(words) for *_, words in row))) for row in rows]
        table_height = _CELL * len(self.compared) + 0.8 if self.compared else 0.0
        canvas = new_canvas(_WIDTH, sum(heights) + table_height)
        top = 0.0
        for row, height in zip(rows, heights, strict=True):
            boxes = in_rows(len(row), Box(0, top, _WIDTH, height), abreast=2)
            for box, (task, label, words) in zip(boxes, row, strict=True):
                _draw_words(canvas, box, f"towards {label} ({task})", words)
            top += height
        if self.compared:
            n, longest = len(self.compared), max(map(len, self.compared))
            place = Box(LETTER_WIDTH * longest + 0.4, top + 0.4, _CELL * n, _CELL * n)
            self._draw_agreement(canvas.axes(place))
        return canvas.figure

    def _draw_agreement(self, ax: Axes) -> None:
        """Numbers in cells: there are few methods, and the second decimal is worth reading.

        Names and numbers on the left, numbers alone below, where names would have to lean.
        """
        values = np.array(self.agreement, np.float64)
        image = ax.imshow(values, cmap="PuOr", vmin=-1, vmax=1)
        places = range(len(self.compared))
        names = [f"{name}  {place + 1}" for place, name in enumerate(self.compared)]
        ax.set_yticks(places, names, fontsize=8, parse_math=False)
        ax.set_xticks(places, [str(place + 1) for place in places], fontsize=8)
        ax.tick_params(length=0)
        for (row, column), value in np.ndenumerate(values):
            known = f"{value:.2f}", text_colour(image, value)
            text, colour = ("–", INK) if isnan(value) else known
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
        ax.set_title("Spearman’s correlation between methods", fontsize=9)
        ax.spines[:].set_visible(False)


def _draw_words(canvas: Canvas, box: Box, title: str, words: Sequence[Push]) -> None:
    if words:
        means = [
            NamedMean.around(push.word, push.weight, push.half_width, note=f"n {push.n}")
            for push in words
        ]
        unit = "mean weight with its 95 % interval"
        canvas.ranking(box, title, means, x=unit).set_xlim(left=0)
        return
    ax = canvas.chart(box, title, left=0.4)
    centred: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, "no word does so surely", fontsize=8, **centred)
    ax.set_axis_off()


class AttributionAnalysis(Analysis):
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
        if compared is None:
            compared = [name for name in METHODS if name != CONTROL]
        for name in compared:
            pick(METHODS, name, "method")
        self.method, self.most_texts, self.most_compared = method, n_texts, n_compared
        self.compared = tuple(compared)
        self.agreement = RunningMean(len(self.compared), len(self.compared))
        # (task, label): {word: its weight}
        self.weights: defaultdict[tuple[str, int], Means] = defaultdict(Means)
        self.n_seen = self.n_compared = 0

    def add(self, observation: Observation) -> None:
        self.n_seen += 1
        if self.n_texts < self.most_texts:
            super().add(observation)

    def measure(self, observation: Observation) -> dict[str, Any]:
        """The weights of the words and the agreement of the methods have counts of their own."""
        if not observation.read.words:
            return {}
        tasks = list(self.model.classifier.tasks.values())
        for task in tasks:
            for label, weights in self._weights(observation, task):
                # a text counts once for a word, with the mean of its occurrences
                by_spelling: defaultdict[str, list[float]] = defaultdict(list)
                for word, weight in zip(observation.read.words, weights, strict=True):
                    by_spelling[word.written.casefold()].append(weight)
                self.weights[task.name, label].add(
                    {word: sum(values) / len(values) for word, values in by_spelling.items()}
                )
        if self.n_compared < self.most_compared:
            self.n_compared += 1
            question = Question.about(self.model, observation, tasks[0])
            found = {name: np.array(weigh_words(name, question).weights) for name in self.compared}
            self.agreement.add([[agreement(found, one, other) for other in found] for one in found])
        return {}

    def _weights(
        self, observation: Observation, task: Task
    ) -> Iterator[tuple[int, Sequence[float]]]:
        """The words' weights for each label whose log odds are explained: of two labels the second.

        There the answer is asked about, as other measures do, and turned if need be.
        """
        if _has_two_sides(task):
            question = Question.about(self.model, observation, task)
            # log odds of one label are those of the other, turned
            sign = 1 if question.label or task.is_regression else -1
            weights = weigh_words(self.method, question).weights
            yield 1, [sign * weight for weight in weights]
            return
        for label in range(len(task.labels)):
            question = Question.about(self.model, observation, task, label)
            yield label, weigh_words(self.method, question).weights

    def result(self) -> Pushes:
        tasks = self.model.classifier.tasks.values()
        fewest = FEWEST if self.n_compared >= FEWEST else 1
        agree, widths = (
            plain(np.where(self.agreement.n >= fewest, values, nan))
            for values in (self.agreement.mean, self.agreement.half_width)
        )
        return self.means_as(
            Pushes,
            n_seen=self.n_seen,
            method=self.method,
            towards={task.name: self._towards(task) for task in tasks},
            compared=self.compared,
            agreement=agree,
            agreement_half_width=widths,
            n_compared=self.n_compared,
        )

    def _towards(self, task: Task) -> dict[str, tuple[Push, ...]]:
        """Picks the words for each label or direction; of two, for one is against the other."""
        if _has_two_sides(task):
            no, yes = ("lower", "higher") if task.is_regression else task.labels
            weights = self.weights[task.name, 1]
            return {no: _surest(weights, sign=-1), yes: _surest(weights)}
        return {
            label: _surest(self.weights[task.name, place])
            for place, label in enumerate(task.labels)
        }


def _has_two_sides(task: Task) -> bool:
    return task.is_regression or (len(task.labels) == 2 and not task.multi_label)


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
        return nan
    return float(pearson(ranks(left), ranks(right)))
