"""What every attribution method is asked: why this answer to this text?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from litotes.core.values import Task
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model
from litotes.model.inference import compute_logits
from litotes.text.tokenizer import Pieces, ReadText


@dataclass(frozen=True)
class Question:
    """One answer of a model. label: its number among the task's labels; 0 for a regression.
    between: see `compute_logits`.

    What is explained is the log odds of the label, with the calibration the model answers with:

        F = z_c / T − log Σ_{k ≠ c} e^{z_k / T} = log p_c / (1 − p_c)

    of two labels the difference of the logits, for a regression the value. A logit alone would not
    do: what moves all logits alike changes no answer.
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
        labels, _ = model.calibration_of(task.name).apply(
            observation.logits[task.name][None].numpy()
        )
        return cls(model, observation, task, int(labels[0]))

    @property
    def read(self) -> ReadText:
        return self.observation.read

    def score(self, logits: Tensor) -> Tensor:
        """F of every text, from logits (text, class). (text,)"""
        if self.task.is_regression:
            return logits[:, 0]
        logits = logits / self.model.calibration_of(self.task.name).temperature
        others = [label for label in range(len(self.task.labels)) if label != self.label]
        return logits[:, self.label] - logits[:, others].logsumexp(-1)

    def scores(self, texts: Sequence[Pieces]) -> Tensor:
        """F of other texts, the answer still being the one given to this. (text,)"""
        return self.score(
            compute_logits(self.model, texts, between=self.between)[self.task.name].double()
        )

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
