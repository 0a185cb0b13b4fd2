"""The loss of a batch: class-weighted cross-entropy, or squared error for a number.

    L_task = Σ_i w_{y_i} · (−log p_i[y_i]) / Σ_i w_{y_i},   w_c = n / (C · n_c)

Texts without a label for a task add nothing to it. The normalisers are those of the whole batch, so
that several processes that each compute a part of it add up to the same gradient as one process.
How the tasks' losses become one step is `balancing`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.values import MISSING, Task


def class_weights(targets: Tensor, task: Task) -> Tensor:
    """Inverse class frequencies, 1 on average over the texts.

    A class that never occurs gets 0. (class,)
    """
    counts = torch.bincount(targets[targets != MISSING], minlength=len(task.labels)).float()
    n_seen = int((counts > 0).sum())
    return torch.where(counts > 0, counts.sum() / (max(n_seen, 1) * counts.clamp(min=1)), 0.0)


def task_weights(
    targets: Mapping[str, Tensor], tasks: Mapping[str, Task], *, balanced: bool
) -> dict[str, Tensor]:
    """Class weights per classification task; all ones where classes are not to be balanced."""
    classification = {name: task for name, task in tasks.items() if not task.is_regression}
    if not balanced:
        return {name: torch.ones(len(task.labels)) for name, task in classification.items()}
    return {name: class_weights(targets[name], task) for name, task in classification.items()}


def has_label(targets: Tensor) -> Tensor:
    """Which texts carry a label. (text,)"""
    return ~targets.isnan() if targets.is_floating_point() else targets != MISSING


def text_weights(targets: Tensor, weights: Tensor | None) -> Tensor:
    """How much each text counts: its class's weight; 0 without a label; 1 for a number. (text,)"""
    if weights is None:
        return has_label(targets).float()
    by_class = weights.to(targets.device)
    return torch.where(has_label(targets), by_class[targets.clamp(min=0)], 0.0)


def text_losses(logits: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
    """Each text's weighted loss; 0 without a label.

    logits (text, class), targets (text,) → (text,)
    """
    if weights is None:
        squares = (logits.float().squeeze(-1) - targets.nan_to_num()).square()
        return squares * text_weights(targets, None)
    return functional.cross_entropy(
        logits.float(), targets, weight=weights, ignore_index=MISSING, reduction="none"
    )
