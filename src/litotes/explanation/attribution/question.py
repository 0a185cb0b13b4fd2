"""What every attribution method is asked: why this answer to this text?

Nothing here imports torch: what only asks for answers can be asked of any runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.values import Answer, Task
from litotes.encoder.tokenizer import Pieces, ReadText
from litotes.model.calibration import Calibration, label_to_explain
from litotes.model.runtime import Runtime, compute_logits, to_answers

if TYPE_CHECKING:
    from torch import Tensor

    from litotes.explanation.observation import Observation
    from litotes.model.checkpoint import Model

_N_TEXTS = 32
"""Asked of a runtime at a time; in between the work can be ended."""


class TextQuestion(ABC):
    """One answer of a model, asked about by changing the text. label: its number among the task's
    labels; 0 for a regression.

    What is explained is the log odds of the label, with the calibration the model answers with:

        F = z_c / T − log Σ_{k ≠ c} e^{z_k / T} = log p_c / (1 − p_c)

    of two labels the difference of the logits, of one label of several the logit over T, for a
    regression the value. Where one label is chosen, a logit alone would not
    do: what moves all logits alike changes no answer.
    """

    task: Task
    label: int

    @property
    @abstractmethod
    def read(self) -> ReadText:
        """The text."""

    @property
    @abstractmethod
    def calibration(self) -> Calibration:
        """Of the task."""

    @abstractmethod
    def logits(self, texts: Sequence[Pieces]) -> NDArray[Any]:
        """Of the task, (text, class)."""

    def scores(self, texts: Sequence[Pieces]) -> NDArray[np.float64]:
        """F of other texts, the answer still being the one given to this. (text,)"""
        logits = self.logits(texts).astype(np.float64)
        if self.task.is_regression:
            return logits[:, 0]
        logits /= self.calibration.temperature
        if self.task.multi_label:
            return logits[:, self.label]
        others = np.delete(logits, self.label, axis=1)
        scores: NDArray[np.float64] = logits[:, self.label] - np.logaddexp.reduce(others, axis=1)
        return scores

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
class RuntimeQuestion(TextQuestion):
    """Asked of whatever computes the answers. between: called before each batch; may raise to end
    the work.
    """

    runtime: Runtime
    text: ReadText
    task: Task
    label: int
    between: Callable[[], None] = lambda: None

    @property
    def read(self) -> ReadText:
        return self.text

    @property
    def calibration(self) -> Calibration:
        return self.runtime.calibration.get(self.task.name, Calibration())

    def logits(self, texts: Sequence[Pieces]) -> NDArray[Any]:
        parts = []
        for start in range(0, len(texts), _N_TEXTS):
            self.between()
            part = self.runtime.logits(texts[start : start + _N_TEXTS])
            parts.append(part[self.task.name])
        return np.concatenate(parts)


@dataclass(frozen=True)
class Question(TextQuestion):
    """Asked of a model that torch computes, so that methods can look inside. between: see
    `compute_logits`.
    """

    model: Model
    observation: Observation
    task: Task
    label: int
    between: Callable[[], None] = lambda: None

    @classmethod
    def about(cls, model: Model, observation: Observation, task: Task) -> Question:
        """The answer the model gives."""
        if task.is_regression:
            return cls(model, observation, task, 0)
        logits = observation.logits[task.name][None].numpy()
        (answer,) = to_answers(logits, task, model.calibration_of(task.name))
        return cls(model, observation, task, number_of(answer, task))

    @property
    def read(self) -> ReadText:
        return self.observation.read

    @property
    def calibration(self) -> Calibration:
        return self.model.calibration_of(self.task.name)

    def logits(self, texts: Sequence[Pieces]) -> NDArray[Any]:
        found: NDArray[Any] = compute_logits(self.model, texts, between=self.between)[
            self.task.name
        ].numpy()
        return found

    def score(self, logits: Tensor) -> Tensor:
        """F of every text, from logits (text, class), with its gradient. (text,)"""
        if self.task.is_regression:
            return logits[:, 0]
        logits = logits / self.calibration.temperature
        if self.task.multi_label:
            return logits[:, self.label]
        others = [label for label in range(len(self.task.labels)) if label != self.label]
        return logits[:, self.label] - logits[:, others].logsumexp(-1)


def number_of(answer: Answer, task: Task) -> int:
    """Of the label that is asked about; 0 for a regression."""
    if task.is_regression:
        return 0
    label = label_to_explain(answer) if task.multi_label else str(answer.label)
    return task.labels.index(label)
