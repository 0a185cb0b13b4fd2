"""What the held-out slice of train is for: choosing the epoch, then fitting temperature and
threshold.
"""

from __future__ import annotations

import torch
from torch import Tensor

from litotes.core.counts import confusion, macro_f1, pearson
from litotes.core.values import MISSING, Task
from litotes.model.calibration import Calibration, fit
from litotes.model.classifier import Classifier
from litotes.training.inputs import Inputs, all_logits


def held_out_score(classifier: Classifier, source: Inputs, *, worst_group: bool) -> float | None:
    """The mean over tasks of macro-F1 (Pearson's r for a regression) on the held-out texts, or on
    each task's worst group of them.

    None where no task (or group) shows more than one answer: then the texts say nothing about a
    model.
    """
    values = []
    for name, logits in all_logits(source, classifier).items():
        task, gold, groups = classifier.tasks[name], source.texts.targets[name], source.texts.groups
        there = labelled(task, gold)
        parts = [there & (groups == group) for group in groups.unique()] if worst_group else [there]
        scores = [
            _score(task, gold[part], logits[part]) for part in parts if len(gold[part].unique()) > 1
        ]
        if scores:
            values.append(min(scores))
    return sum(values) / len(values) if values else None


def fit_calibrations(
    classifier: Classifier, source: Inputs, *, with_threshold: bool, by_group: bool
) -> dict[str, Calibration]:
    """Temperature and threshold of every classification task, fitted on the held-out texts."""
    fitted = {}
    for name, logits in all_logits(source, classifier).items():
        task, gold = classifier.tasks[name], source.texts.targets[name]
        if task.is_regression:
            continue
        there = labelled(task, gold)
        groups = source.texts.groups[there].tolist() if by_group else None
        fitted[name] = fit(
            logits[there].numpy(), gold[there].numpy(), groups=groups, with_threshold=with_threshold
        )
    return fitted


def labelled(task: Task, gold: Tensor) -> Tensor:
    """Which texts carry a label of the task. (text,)"""
    return ~gold.isnan() if task.is_regression else gold != MISSING


def _score(task: Task, gold: Tensor, logits: Tensor) -> float:
    if task.is_regression:
        return float(pearson(gold.double().numpy(), logits.squeeze(-1).double().numpy()))
    return float(
        macro_f1(confusion(gold.numpy(), torch.argmax(logits, -1).numpy(), len(task.labels)))
    )
