"""Whether two ways of computing a model answer the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bench.batching import Logits
from litotes.core.values import Task

MOST_APART = 1e-3
"""Between probabilities, or numbers where a task has no labels, in float32."""
LEAST_AGREEMENT = 0.9
"""The share of labels that int8 has to keep."""


def agreement(logits: Logits, reference: Logits, tasks: Mapping[str, Task]) -> float:
    """The share of answers that are the same, over texts and tasks. logits: (text, class of all
    tasks)
    """
    same = [
        ours.argmax(1) == theirs.argmax(1) for _, ours, theirs in _pairs(logits, reference, tasks)
    ]
    return round(float(np.mean(same)), 4)


def refusal(
    logits: Logits, reference: Logits, tasks: Mapping[str, Task], precision: str
) -> str | None:
    """Why these are not the answers of the model; None where they are."""
    if not np.isfinite(logits).all():
        return "some of its answers are no numbers"
    if precision == "float32":
        apart = _apart(logits, reference, tasks)
        if apart > MOST_APART:
            return f"its probabilities are up to {apart:.2g} away from the model's"
        return None
    share = agreement(logits, reference, tasks)
    if share < LEAST_AGREEMENT:
        return f"it keeps only {share:.0%} of the model's labels"
    return None


def _apart(logits: Logits, reference: Logits, tasks: Mapping[str, Task]) -> float:
    """The largest difference of two probabilities."""
    largest = 0.0
    for task, ours, theirs in _pairs(logits, reference, tasks):
        if task.is_choice:
            ours, theirs = _probabilities(ours), _probabilities(theirs)
        largest = max(largest, float(np.abs(ours - theirs).max()))
    return largest


def _probabilities(logits: Logits) -> Logits:
    raised: Logits = np.exp(logits - logits.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def _pairs(
    logits: Logits, reference: Logits, tasks: Mapping[str, Task]
) -> Iterator[tuple[Task, Logits, Logits]]:
    """The logits of each task, (text, class)."""
    ends = np.cumsum([task.n_outputs for task in tasks.values()])[:-1]
    parts = np.split(logits, ends, axis=1), np.split(reference, ends, axis=1)
    yield from zip(tasks.values(), *parts, strict=True)
