"""How much each word counts for an answer, and whether the answer really rests on those words.

A new method is a class here (one that asks for answers) or in inside.py (one that looks into the
layers), and one line in `METHODS`. Nothing here imports torch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import has_extra
from litotes.core.registry import LazyTable
from litotes.core.values import Answer, Task
from litotes.encoder.tokenizer import Pieces, ReadText
from litotes.explanation.explanation import Curve, Faithfulness
from litotes.model.calibration import Calibration, label_to_explain, to_answers
from litotes.model.runtime import Runtime, compute_logits

if TYPE_CHECKING:
    from torch import Tensor

    from litotes.explanation.observation import Observation
    from litotes.model.checkpoint import Model

_N_TEXTS = 32
"""Asked of a runtime at a time; in between the work can be ended."""


@dataclass(frozen=True)
class TextQuestion:
    """One answer of a model, asked about by changing the text. label: its number among the task's
    labels; 0 for a regression. logits: those of the task for other texts, (text, class).

    What is explained is the log odds of the label, with the calibration the model answers with:

        F = z_c / T − log Σ_{k ≠ c} e^{z_k / T} = log p_c / (1 − p_c)

    of two labels the difference of the logits, of one label of several the logit over T, for a
    regression the value. Where one label is chosen, a logit alone would not
    do: what moves all logits alike changes no answer.
    """

    read: ReadText
    task: Task
    label: int
    calibration: Calibration
    logits: Callable[[Sequence[Pieces]], NDArray[Any]]

    @classmethod
    def to_runtime(
        cls, runtime: Runtime, read: ReadText, task: Task, label: int, between: Callable[[], None]
    ) -> TextQuestion:
        """Asked of whatever computes the answers. between: called before each batch; may raise to
        end the work.
        """

        def logits(texts: Sequence[Pieces]) -> NDArray[Any]:
            parts = []
            for start in range(0, len(texts), _N_TEXTS):
                between()
                parts.append(runtime.logits(texts[start : start + _N_TEXTS])[task.name])
            return np.concatenate(parts)

        calibration = runtime.calibration.get(task.name, Calibration())
        return cls(read, task, label, calibration, logits)

    def log_odds(self, logits: Any, log_sum_exp: Callable[[Any], Any]) -> Any:
        """F of every text from logits (text, class), of numpy or of torch. (text,)"""
        if self.task.is_regression:
            return logits[:, 0]
        logits = logits / self.calibration.temperature
        if self.task.multi_label:
            return logits[:, self.label]
        others = [label for label in range(len(self.task.labels)) if label != self.label]
        return logits[:, self.label] - log_sum_exp(logits[:, others])

    def scores(self, texts: Sequence[Pieces]) -> NDArray[np.float64]:
        """F of other texts, the answer still being the one given to this. (text,)"""
        log_sum_exp = partial(np.logaddexp.reduce, axis=1)
        return np.asarray(self.log_odds(self.logits(texts).astype(np.float64), log_sum_exp))

    def without(self, words: Collection[int]) -> Pieces:
        """The text after these words have left it; the others close up, special pieces stay."""
        pieces = self.read.pieces
        gone = {place for word in words for place in self.read.words[word].pieces}
        stay = [place for place in range(len(pieces.ids)) if place not in gone]
        return replace(
            pieces,
            ids=[pieces.ids[place] for place in stay],
            segments=[pieces.segments[place] for place in stay],
        )


@dataclass(frozen=True)
class Question(TextQuestion):
    """Asked of a model that torch computes, so that methods can look inside. between: see
    `compute_logits`.
    """

    model: Model
    observation: Observation
    between: Callable[[], None]

    @classmethod
    def about(
        cls,
        model: Model,
        observation: Observation,
        task: Task,
        label: int | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> Question:
        """label: the one asked about; None: the model's answer."""
        calibration = model.calibration_of(task.name)
        if label is None:
            logits = observation.logits[task.name][None].numpy()
            (answer,) = to_answers(logits, task, calibration).objects()
            label = number_of(answer, task)

        def ask(texts: Sequence[Pieces]) -> NDArray[Any]:
            return compute_logits(model, texts, between=between)[task.name].numpy()

        return cls(observation.read, task, label, calibration, ask, model, observation, between)

    def score(self, logits: Tensor) -> Tensor:
        """F of every text, from logits (text, class), with its gradient. (text,)"""
        return cast("Tensor", self.log_odds(logits, lambda others: others.logsumexp(-1)))


def number_of(answer: Answer, task: Task) -> int:
    """Returns the number of the label that is asked about; 0 for a regression."""
    if task.is_regression:
        return 0
    label = label_to_explain(answer) if task.multi_label else str(answer.label)
    return task.labels.index(label)


@dataclass(frozen=True)
class WordWeights:
    """A weight for every word of a text, and what the method knows of its own error, by name."""

    weights: tuple[float, ...]
    error: Mapping[str, float] = field(default_factory=dict)


class Method(ABC):
    """Says how much each word counts for an answer.

    The docstring's first line is what `litotes list methods` shows.

    A word's weight does not depend on the other texts in a batch. What a method gives to pieces
    is added up over a word's pieces.
    is_signed: weights above 0 speak for the answer and weights below 0 against it; otherwise they
    only say how much.
    """

    is_signed: ClassVar[bool]

    @abstractmethod
    def weigh(self, question: Question) -> WordWeights:
        """A weight for every word of the text, in order."""


def by_weight(weights: Sequence[float]) -> tuple[int, ...]:
    """The numbers of the words, the one that speaks most for the answer first; of two that are
    alike, the earlier one.
    """
    return tuple(sorted(range(len(weights)), key=lambda word: -weights[word]))


def by_word(read: ReadText, by_piece: Tensor) -> tuple[float, ...]:
    """Adds up what the pieces of each word have; special pieces belong to none.

    by_piece: (piece,)
    """
    values = by_piece.tolist()
    return tuple(sum(values[place] for place in word.pieces) for word in read.words)


class Occlusion(Method):
    """What the answer loses when the word is really left out, F(text) − F(text without the word).

    Li et al. 2016, arXiv 1612.08220. A text of n words is asked n + 1 times, in packed batches. Of
    two words that say the same, either
    can be spared: both then count little.
    """

    is_signed: ClassVar[bool] = True

    def weigh(self, question: TextQuestion) -> WordWeights:
        n_words = len(question.read.words)
        shorter = [question.without([word]) for word in range(n_words)]
        whole, *others = question.scores([question.read.pieces, *shorter]).tolist()
        return WordWeights(tuple(whole - other for other in others))


class Random(Method):
    """A number drawn for each word. The control: a method that does no better explains nothing.

    The draw depends on the text and the seed alone.
    """

    is_signed: ClassVar[bool] = False

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def weigh(self, question: TextQuestion) -> WordWeights:
        generator = np.random.default_rng([self.seed, *question.read.pieces.ids])
        return WordWeights(tuple(generator.random(len(question.read.words)).tolist()))


METHODS: LazyTable[type[Method]] = LazyTable(
    "litotes.explanation",
    {
        "occlusion": "attribution.Occlusion",
        "integrated_gradients": "inside.IntegratedGradients",
        "gradient_input": "inside.GradientInput",
        "effective": "inside.Effective",
        "standard": "inside.Standard",
        "value_norm": "inside.ValueNorm",
        "rollout": "inside.Rollout",
        "random": "attribution.Random",
    },
)

CONTROL = "random"
"""What every other method has to beat."""
ASKING = ("occlusion", "random")
"""Those that only ask for answers, never how they come about: any runtime will do."""


def available_methods() -> tuple[str, ...]:
    """Lists what this installation can run, in the table's order: looking inside needs torch."""
    return tuple(METHODS) if has_extra("train") else ASKING


def weigh_words(name: str, question: Question) -> WordWeights:
    """Weighs the words by the method called `name` with its own defaults; computed once for all
    analyses that ask about the same answer.
    """
    cache, key = question.observation.cache, (name, question.task.name, question.label)
    if key not in cache:
        cache[key] = METHODS[name]().weigh(question)
    return cast(WordWeights, cache[key])


# Whether a method's words are those the answer rests on: they are taken away, or kept alone, and
# the model is asked again.
#
# DeYoung et al. 2020 (ERASER), arXiv 1911.03429, §4, with p the probability of the answer first
# given (a regression: its value minus how far the new value is from it, whichever way it moves), x
# a text, r_s the share s of its words that a method puts first:
#
#     comprehensiveness = mean over s of p(x) − p(x without r_s)
#     sufficiency loss  = mean over s of p(x) − p(r_s alone)
#
# Words really leave: their pieces are gone from the packed text, the others close up, special
# pieces stay. Words of a pair count alike. A signed method puts first what speaks most for the
# answer, and last what speaks most against it.

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Of the words, rounded up: every share above 0 is one word at least.

Both ends are the same for all methods and are not averaged over.
"""


def faithfulness(
    question: TextQuestion, orders: Mapping[str, Sequence[int]]
) -> dict[str, Faithfulness]:
    """Tests several methods for one answer. orders: {method: the words' numbers, the most important
    one first}.
    """
    counts = [n_words(share, len(question.read.words)) for share in SHARES]
    # {method: for each share a text with these words deleted, and one with them alone}
    texts = {
        name: [question.without(part) for n in counts for part in (order[:n], order[n:])]
        for name, order in orders.items()
    }
    # methods often agree on what to take away, so each text is asked about once
    answers = _answers(question, {_key(text): text for group in texts.values() for text in group})
    tested = {}
    for name, group in texts.items():
        going, coming = np.array([answers[_key(text)] for text in group]).reshape(-1, 2).T
        tested[name] = Faithfulness(
            deletion=Curve(SHARES, tuple(going.tolist())),
            sufficiency=Curve(SHARES, tuple(coming.tolist())),
            comprehensiveness=float((going[0] - going[1:-1]).mean()),
            sufficiency_loss=float((going[0] - coming[1:-1]).mean()),
        )
    return tested


def _answers(question: TextQuestion, texts: Mapping[Any, Pieces]) -> dict[Any, float]:
    """Computes how probable the answer is, for each text; of a regression, how near its value."""
    scores = question.scores(list(texts.values()))  # log odds, or values of a regression
    values = np.exp(-np.logaddexp(0.0, -scores))  # (text,), from log odds
    if question.task.is_regression:
        # the share 0 takes nothing away
        whole = scores[list(texts).index(_key(question.read.pieces))]
        values = whole - np.abs(scores - whole)
    return dict(zip(texts, values.tolist(), strict=True))


def n_words(share: float, n: int) -> int:
    """A share of n words, rounded up (0.1 of 30 is 3, whatever floating point says)."""
    return math.ceil(share * n - 1e-9)


def order_of(question: TextQuestion, found: WordWeights) -> tuple[int, ...]:
    """The words, the most important one first.

    A number has no side to speak for: there the size of a weight counts.
    """
    if question.task.is_regression:
        return by_weight([abs(weight) for weight in found.weights])
    return by_weight(found.weights)


def _key(text: Pieces) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(text.ids), tuple(text.segments)
