"""The points of a frontier: what a setting saves, counted and measured, and what it loses, with its
interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.core.values import Task
from litotes.evaluation.answer_patterns import find_patterns
from litotes.evaluation.intervals import scores_of, text_bootstrap
from litotes.evaluation.scores import interval
from litotes.model.classifier import Classifier
from litotes.model.speed import seconds_in_turns
from litotes.text.packing import TextSet
from litotes.training.losses import has_label


@dataclass(frozen=True)
class Loss:
    """Macro-F1 of the dense model less that of the pruned one on the same texts, in points
    (hundredths), mean over tasks.

    interval: 95 %, paired bootstrap over texts. chance_within: how often, in that bootstrap, the
    loss is within the budget.
    """

    points: float
    interval: tuple[float, float]
    chance_within: float


@dataclass(frozen=True)
class Point:
    """One setting.

    Ratios are against our own dense packed encoder on the same texts: never against padding.

    loss: on the held-out texts, by which a setting is chosen. test_loss: on the test split, which
    takes no part in the choice; None without one.
    """

    target: float
    shares: tuple[float, ...]
    n_heads: int
    flops_ratio: float
    speed_ratio: float
    loss: Loss
    test_loss: Loss | None
    divergence: float
    chosen: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure_loss(
    classifier: Classifier,
    texts: TextSet,
    dense: Mapping[str, Tensor],
    pruned: Mapping[str, Tensor],
    *,
    budget: float,
) -> Loss:
    """What the answers `pruned` lose against `dense`, both logits {task: (text, class)}."""
    values, draws = [], []
    for number, (name, task) in enumerate(classifier.tasks.items()):
        if not task.is_regression:
            both = torch.stack([dense[name].argmax(-1), pruned[name].argmax(-1)])  # (2, text)
            value, resampled = _task_loss(task, texts.targets[name], both, seed=number)
            values.append(value)
            draws.append(resampled)
    if not values:
        raise UserError(
            "All tasks of this model are answered with a number; a pruning is chosen by macro-F1."
            " Choose a classifier."
        )
    losses = np.mean(draws, axis=0)  # (resample,)
    return Loss(float(np.mean(values)), interval(losses), float((losses <= budget).mean()))


def _task_loss(
    task: Task, gold: Tensor, answers: Tensor, *, seed: int
) -> tuple[float, NDArray[np.float64]]:
    """The loss in points, and in each resample of the texts, (resample,).

    gold: (text,), answers: of the dense and of the pruned model, (2, text).
    """
    labelled = has_label(gold)  # (text,)
    found = find_patterns(gold[labelled].numpy(), answers[:, labelled].numpy(), len(task.labels))
    dense, pruned = scores_of(found)
    resampled = text_bootstrap(found, seed=seed)  # (resample, 2)
    return 100 * (dense - pruned), 100 * (resampled[:, 0] - resampled[:, 1])


def speed_ratios(
    dense: Classifier, pruned: Sequence[Classifier], texts: TextSet, *, n_rounds: int, watch: Watch
) -> list[float]:
    """How many times as fast as the dense classifier each of the others answers the texts, in
    turns, pieces to logits.
    """
    timed = {"dense": (dense, texts)}
    for number, classifier in enumerate(pruned):
        timed[str(number)] = (classifier, texts)
    dense_seconds, *pruned_seconds = seconds_in_turns(
        timed, what="prune: rounds", n_rounds=n_rounds, watch=watch
    ).values()
    return [dense_seconds / each for each in pruned_seconds]
