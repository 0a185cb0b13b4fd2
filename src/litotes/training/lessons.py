"""Teachers' answers to the texts of a run, for a student to learn from besides the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import Tensor

from litotes.core.values import Example, Task
from litotes.data.corpus import example_key
from litotes.encoder.packing import TextSet
from litotes.training.losses import SoftAnswers, has_label, task_weights

Answers = Mapping[str, Mapping[str, tuple[float, ...]]]
"""{task: {example_key of a text: the probability of each class, or the number}}"""

_SMALLEST = 1e-9
"""The smallest probability: its logarithm must be a number."""


@dataclass(frozen=True)
class Lessons:
    """Answers to learn from, and how much they count against labels.

    answers: as if no class had been weighted. unlabelled: texts to learn from besides those of the
    run, by their answers alone. about: a sentence for people, about the teachers.
    """

    answers: Answers
    unlabelled: tuple[Example, ...]
    share: float
    temperature: float
    about: str = ""

    def key(self) -> str:
        """A hash of all that a student depends on."""
        texts = [example_key(example) for example in self.unlabelled]
        answers = {task: dict(by_text) for task, by_text in self.answers.items()}
        content = (answers, texts, self.share, self.temperature)
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def notes(self) -> list[str]:
        """Collects what the user should know about teachers and texts."""
        counted = f"Answers count {self.share:g} of a label."
        notes = [f"{self.about} {counted}"] if self.about else []
        if n := len(self.unlabelled):
            notes.append(f"{n} texts without labels were learned from teachers alone.")
        return notes

    def teacher_of(
        self,
        examples: Sequence[Example],
        texts: TextSet,
        tasks: Mapping[str, Task],
        *,
        balanced: bool,
    ) -> SoftAnswers:
        """The answers to these texts, in their order. balanced: whether classes are weighted."""
        weights = task_weights(texts.targets, tasks, balanced=balanced)
        logits, shares, answer_weights = {}, {}, {}
        for name, task in tasks.items():
            answers, answered = self._answers_to(examples, name, task.n_outputs)
            labelled = has_label(texts.targets[name])
            share = torch.where(labelled, self.share, 1.0)
            shares[name] = torch.where(answered, share, 0.0)  # (text,)
            if task.is_regression:
                logits[name], answer_weights[name] = answers, answered.float()
                continue
            leaning = answers * weights[name]  # (text, class)
            answer_weights[name] = leaning.sum(-1)
            logits[name] = _normalise(leaning).clamp(min=_SMALLEST).log()
        return SoftAnswers(
            logits, self.share, self.temperature, shares=shares, weights=answer_weights
        )

    def _answers_to(
        self, examples: Sequence[Example], task: str, n_outputs: int
    ) -> tuple[Tensor, Tensor]:
        """The answers (text, class), zeros where there is none, and where there is one (text,)."""
        by_text = self.answers.get(task, {})
        found = [by_text.get(example_key(example)) for example in examples]
        nothing = (0.0,) * n_outputs
        answers = torch.tensor([nothing if one is None else one for one in found])
        return answers, torch.tensor([one is not None for one in found])


def _normalise(values: Tensor) -> Tensor:
    return values / values.sum(-1, keepdim=True).clamp(min=_SMALLEST)
