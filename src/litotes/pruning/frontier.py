"""The points of a frontier: what a setting saves, counted and measured, and what it loses, with its
interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Floats
from litotes.core.progress import Watch
from litotes.encoder.packing import TextSet
from litotes.evaluation.scores import interval
from litotes.evaluation.significance import find_patterns, scores_of, text_bootstrap
from litotes.model.classifier import Classifier, seconds_in_turns
from litotes.pruning.loss import Answers

Kind = Literal["dense", "control", "pruned"]


@dataclass(frozen=True)
class TaskLoss:
    """Macro-F1 of the dense model less that of the pruned one on one task, in points
    (hundredths), with its 95 % interval.
    """

    points: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Loss:
    """What a setting loses against dense, in points of macro-F1 (hundredths), each model under its
    own thresholds; of several tasks the one that loses most.

    interval: 95 %. chance_within: how often all tasks are within the budget, in a paired bootstrap
    over texts or in draws from what is expected.
    """

    points: float
    interval: tuple[float, float]
    chance_within: float
    by_task: Mapping[str, TaskLoss] = field(default_factory=dict)


NO_LOSS = Loss(0.0, (0.0, 0.0), 1.0)


@dataclass(frozen=True)
class Point:
    """One setting.

    Ratios are against our own dense packed encoder on the same texts: never against padding.

    kind: dense, from which all losses are counted; control, the same trained on as long and with
    the same teacher as the pruned ones; or pruned.
    loss: on the texts kept apart. expected: on new texts, after all that was seen
    (`expected_loss`), by which a setting is chosen. test_loss and reported: on the test split and
    on the texts of `held_out`, which take no part in the choice; None without them.
    agreement: share of texts without a label (of those kept apart, where there are none) that are
    answered as by dense.
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
    kind: Kind = "pruned"
    expected: Loss | None = None
    reported: Loss | None = None
    agreement: float | None = None

    @property
    def best_guess(self) -> Loss:
        """What it is expected to lose, or showed where nothing is known beyond that."""
        return self.loss if self.expected is None else self.expected

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure_loss(answers: Mapping[str, Answers], place: int, *, budget: float) -> Loss:
    """What the setting at `place` (dense is 0) loses on these texts, {task: answers}."""
    points, draws = {}, {}
    for number, (name, task) in enumerate(answers.items()):
        assert task.gold is not None
        both = task.labels[[0, place]]  # (2, text)
        found = find_patterns(task.gold, both, task.probabilities.shape[-1])
        dense, pruned = scores_of(found)
        resampled = text_bootstrap(found, seed=number)  # (resample, 2)
        points[name] = 100 * float(dense - pruned)
        draws[name] = 100 * (resampled[:, 0] - resampled[:, 1])
    return join_tasks(points, draws, budget=budget)


def join_tasks(points: Mapping[str, float], draws: Mapping[str, Floats], *, budget: float) -> Loss:
    """The losses of all tasks as one. draws: of each, (draw,)."""
    if not points:
        raise UserError(
            "All tasks of this model are answered with a number; a pruning is chosen by macro-F1."
            " Choose a classifier."
        )
    by_task = {name: TaskLoss(points[name], interval(draws[name])) for name in points}
    worst = max(by_task.values(), key=lambda task: task.points)
    within = np.array([values <= budget for values in draws.values()])  # (task, draw)
    return Loss(worst.points, worst.interval, float(within.all(0).mean()), by_task)


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
