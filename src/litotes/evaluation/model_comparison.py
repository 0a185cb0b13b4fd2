"""Two models on the same texts: what one gains over the other, over all of them and by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.data.corpus import Corpus
from litotes.evaluation.evaluate import TaskPredictions, split_by_cell
from litotes.evaluation.significance import SIGNIFICANT, Difference, difference, holm


@dataclass(frozen=True)
class ModelDifference:
    """The first model less the second in one cell; `adjusted_p` is Holm's over all rows."""

    task: str
    cell: str
    difference: Difference
    adjusted_p: float

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT

    def as_json(self) -> dict[str, Any]:
        rest = {"adjusted_p": self.adjusted_p, "significant": self.is_significant}
        return {"task": self.task, "cell": self.cell} | self.difference.as_json() | rest


def compare_models(
    own: Mapping[str, TaskPredictions],
    other: Mapping[str, TaskPredictions],
    corpus: Corpus,
    *,
    seed: int = 0,
) -> tuple[ModelDifference, ...]:
    """Rows as those of `score_cells`, for the classification tasks that both models answer."""
    found = []
    for task in _common_tasks(own, other):
        for cell, one in _compare_task(own[task], other[task], corpus, seed=seed):
            found.append((task, cell, one))
    adjusted = holm([one.p for _, _, one in found])
    return tuple(ModelDifference(*row, p) for row, p in zip(found, adjusted, strict=True))


def _common_tasks(
    own: Mapping[str, TaskPredictions], other: Mapping[str, TaskPredictions]
) -> list[str]:
    common = [task for task in own if task in other]
    tasks = [task for task in common if own[task].task.is_choice]
    if not tasks:
        raise UserError(
            "The models have no task in common here that is answered with one label: one answers"
            f" {', '.join(own)}, the other {', '.join(other)}."
        )
    return tasks


def _compare_task(
    own: TaskPredictions, other: TaskPredictions, corpus: Corpus, *, seed: int
) -> Iterator[tuple[str, Difference]]:
    """The difference over all texts, then by cell."""
    first, second = _with_same_labels(own, other)
    cells = zip(split_by_cell(first, corpus), split_by_cell(second, corpus), strict=True)
    for (cell, part), (_, theirs) in cells:
        # (seed, text) each
        answers = (part.predicted()[np.newaxis], theirs.predicted()[np.newaxis])
        yield cell, difference(part.gold(), *answers, len(first.task.labels), seed=seed)


def _with_same_labels(
    own: TaskPredictions, other: TaskPredictions
) -> tuple[TaskPredictions, TaskPredictions]:
    """Both with the labels of both, in the same order, so that a number means the same word."""
    labels = tuple(dict.fromkeys([*own.task.labels, *other.task.labels]))
    task = Task(own.task.name, labels)
    return _with_task(own, task), _with_task(other, task)


def _with_task(predictions: TaskPredictions, task: Task) -> TaskPredictions:
    return replace(predictions, task=task)
