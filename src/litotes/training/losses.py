"""The loss of a batch: class-weighted cross-entropy, or squared error for a number.

    L_task = Σ_i w_{y_i} · (−log p_i[y_i]) / Σ_i w_{y_i},   w_c = n / (C · n_c)

Where a text may have several labels, each label c is a question of its own with the answers no (0)
and yes (1), and a text's loss and weight are the means over labels:

    L_task = Σ_i Σ_c w_{c,y_ic} · (−log p_ic[y_ic]) / Σ_i Σ_c w_{c,y_ic},  w_{c,y} = n / (2 n_{c,y})

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


def label_weights(targets: Tensor) -> Tensor:
    """How much no and yes count for each label, 1 on average over the texts.

    An answer that never occurs gets 0. targets: (text, class) → (class, answer)
    """
    labelled = targets[has_label(targets)]
    n_yes = labelled.sum(0)
    counts = torch.stack([len(labelled) - n_yes, n_yes], -1)  # (class, answer)
    n_seen = (counts > 0).sum(-1, keepdim=True).clamp(min=1)
    return torch.where(counts > 0, len(labelled) / (n_seen * counts.clamp(min=1)), 0.0)


def task_weights(
    targets: Mapping[str, Tensor], tasks: Mapping[str, Task], *, balanced: bool
) -> dict[str, Tensor]:
    """Class weights per classification task; all ones where classes are not to be balanced."""
    weights = {}
    for name, task in tasks.items():
        if task.multi_label:
            ones = torch.ones(len(task.labels), 2)
            weights[name] = label_weights(targets[name]) if balanced else ones
        elif not task.is_regression:
            ones = torch.ones(len(task.labels))
            weights[name] = class_weights(targets[name], task) if balanced else ones
    return weights


def has_label(targets: Tensor) -> Tensor:
    """Which texts carry a label. (text,)"""
    if targets.ndim == 2:
        return ~targets.isnan().any(-1)
    return ~targets.isnan() if targets.is_floating_point() else targets != MISSING


def text_weights(targets: Tensor, weights: Tensor | None) -> Tensor:
    """How much each text counts: its class's weight; 0 without a label; 1 for a number. (text,)"""
    if weights is None:
        return has_label(targets).float()
    if targets.ndim == 2:
        return _weights_of_each(targets, weights).mean(-1)
    by_class = weights.to(targets.device)
    return torch.where(has_label(targets), by_class[targets.clamp(min=0)], 0.0)


def text_losses(logits: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
    """Each text's weighted loss; 0 without a label.

    logits (text, class), targets (text,) or (text, class) → (text,)
    """
    if targets.ndim == 2:
        assert weights is not None
        each = functional.binary_cross_entropy_with_logits(
            logits.float(), targets.nan_to_num(), reduction="none"
        )
        return (each * _weights_of_each(targets, weights)).mean(-1)
    if weights is None:
        squares = (logits.float().squeeze(-1) - targets.nan_to_num()).square()
        return squares * text_weights(targets, None)
    return functional.cross_entropy(
        logits.float(), targets, weight=weights, ignore_index=MISSING, reduction="none"
    )


def _weights_of_each(targets: Tensor, weights: Tensor) -> Tensor:
    """How much each answer counts; 0 without a label. weights: (class, answer) → (text, class)"""
    no, yes = weights.to(targets.device).unbind(-1)
    return torch.where(targets.isnan(), 0.0, torch.where(targets > 0, yes, no))
