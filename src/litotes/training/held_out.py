"""The uses of the held-out slice of train: choosing the epoch, then fitting temperature and
threshold.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from litotes.core.numbers import confusion, macro_f1, pearson
from litotes.core.values import Task
from litotes.evaluation.scores import macro_f1_of
from litotes.model.calibration import Calibration, fit_calibration, fit_each
from litotes.model.classifier import Classifier
from litotes.training.inputs import Inputs, all_logits
from litotes.training.losses import has_label
from litotes.training.recipe import TrainingSettings


def held_out_score(classifier: Classifier, inputs: Inputs, *, worst_group: bool) -> float | None:
    """The mean over tasks of macro-F1 (Pearson's r for a regression) on the held-out texts, or on
    each task's worst group of them.

    None where no task (or group) shows more than one answer: such texts cannot tell models apart.
    """
    groups, task_scores = inputs.texts.groups, []
    for name, logits in all_logits(inputs, classifier).items():
        task, gold = classifier.tasks[name], inputs.texts.targets[name]
        parts = [has_label(gold)]  # (text,) each
        if worst_group:
            parts = [parts[0] & (groups == group) for group in groups.unique()]
        telling = [part for part in parts if len(gold[part].unique()) > 1]
        if telling:
            task_scores.append(min(_score(task, gold[part], logits[part]) for part in telling))
    return sum(task_scores) / len(task_scores) if task_scores else None


def score_name(tasks: Iterable[Task], *, worst_group: bool) -> str:
    """Says in words what `held_out_score` is for these tasks."""
    kinds = {"Pearson's r" if task.is_regression else "macro-F1" for task in tasks}
    name = kinds.pop() if len(kinds) == 1 else "score"
    return f"{name} of the worst group" if worst_group else name


def fit_calibrations(
    classifier: Classifier, inputs: Inputs, settings: TrainingSettings
) -> dict[str, Calibration]:
    """Temperature and threshold of every classification task, fitted on the held-out texts."""
    if settings.calibration == "none":
        return {}
    fitted = {}
    for name, logits in all_logits(inputs, classifier).items():
        if classifier.tasks[name].is_regression:
            continue
        gold = inputs.texts.targets[name]
        labelled = has_label(gold)  # (text,)
        by_group = settings.selection == "worst_group"
        fit = fit_each if classifier.tasks[name].multi_label else fit_calibration
        fitted[name] = fit(
            logits[labelled].numpy(),
            gold[labelled].numpy(),
            groups=inputs.texts.groups[labelled].tolist() if by_group else None,
            with_threshold=settings.calibration == "full",
        )
    return fitted


def _score(task: Task, gold: Tensor, logits: Tensor) -> float:
    if task.is_regression:
        return float(pearson(gold.double().numpy(), logits.squeeze(-1).double().numpy()))
    if task.multi_label:
        right, given = gold.numpy() > 0, logits.numpy() > 0
        counts = np.stack([right & given, given, right]).sum(1)  # (kind, class)
        return float(macro_f1_of(counts))
    answers = torch.argmax(logits, -1)
    return float(macro_f1(confusion(gold.numpy(), answers.numpy(), len(task.labels))))
