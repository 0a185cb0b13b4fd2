"""The loss of a batch: class-weighted cross-entropy, or squared error for a number.

    L_task = Σ_i w_{y_i} · (−log p_i[y_i]) / Σ_i w_{y_i},   w_c = n / (C · n_c),   L = Σ_task L_task

Texts without a label for a task add nothing to it. The normalisers are those of the whole batch, so that several processes that each
compute a part of it add up to the same gradient as one process.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from litotes.flow import MISSING, Task


def class_weights(targets: Tensor, task: Task) -> Tensor:
    """Inverse class frequencies, 1 on average over the texts. A class that never occurs gets 0. (class,)"""
    counts = torch.bincount(targets[targets != MISSING], minlength=len(task.labels)).float()
    n_seen = int((counts > 0).sum())
    return torch.where(counts > 0, counts.sum() / (max(n_seen, 1) * counts.clamp(min=1)), 0.0)


def task_weights(targets: Mapping[str, Tensor], tasks: Mapping[str, Task], *, balanced: bool) -> dict[str, Tensor]:
    """Class weights per classification task; all ones where classes are not to be balanced."""
    classification = {name: task for name, task in tasks.items() if not task.is_regression}
    if not balanced:
        return {name: torch.ones(len(task.labels)) for name, task in classification.items()}
    return {name: class_weights(targets[name], task) for name, task in classification.items()}


def normaliser(targets: Tensor, weights: Tensor | None) -> float:
    """What a task's summed loss over a batch is divided by; 0 when no text carries a label."""
    if weights is None:
        return float((~targets.isnan()).sum())
    labelled = targets[targets != MISSING]
    return float(weights.to(labelled.device)[labelled].sum())


def task_loss(logits: Tensor, targets: Tensor, weights: Tensor | None, *, divide_by: float) -> Tensor:
    """One task's loss over (a part of) a batch. logits (text, class), targets (text,)"""
    if divide_by == 0:
        return logits.sum() * 0.0  # keeps every parameter in the graph
    if weights is None:
        labelled = ~targets.isnan()
        return (logits.float().squeeze(-1)[labelled] - targets[labelled]).square().sum() / divide_by
    return functional.cross_entropy(logits.float(), targets, weight=weights, ignore_index=MISSING, reduction="sum") / divide_by
