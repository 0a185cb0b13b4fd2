"""From the logits of a batch to one loss per task: labels, class weights, the teacher, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from litotes.core.values import Task
from litotes.text.packing import TextSet
from litotes.training.groups import GROUP_LOSSES, TaskBatch
from litotes.training.losses import has_label, task_weights, text_losses, text_weights
from litotes.training.processes import Processes
from litotes.training.settings import TrainingSettings
from litotes.training.teacher import Teacher


class TaskLosses:
    """The losses of a set of texts.

    teacher: answers to imitate in addition to the labels.
    """

    def __init__(
        self,
        texts: TextSet,
        tasks: Mapping[str, Task],
        settings: TrainingSettings,
        *,
        device: torch.device,
        processes: Processes,
        teacher: Teacher | None = None,
    ) -> None:
        self.texts, self.device, self.processes, self.teacher = texts, device, processes, teacher
        weights = task_weights(texts.targets, tasks, balanced=settings.class_weights)
        self.class_weights = {task: weight.to(device) for task, weight in weights.items()}
        make_group_loss = GROUP_LOSSES[settings.groups]
        self.group_loss = make_group_loss(len(tasks), texts.n_groups, rate=settings.group_rate)
        self.group_loss.to(device)

    def of_batch(
        self,
        logits: Mapping[str, Tensor],
        *,
        batch: Sequence[int],
        own: Sequence[int],
        own_count: bool,
    ) -> list[Tensor]:
        """This process's part of each task's loss.

        batch: the places of all texts of the batch; own: of those this process has logits of,
        which add nothing to the loss where not `own_count`.
        """
        own_groups = self.texts.groups[list(own)].to(self.device)  # (text,)
        losses = []
        for number, (task, values) in enumerate(logits.items()):
            if own_count:
                one = self._text_losses(task, values, own)
            else:
                one = values.float().sum(-1) * 0.0
            task_batch = TaskBatch(one, own_groups, self._group_weights(task, batch))
            losses.append(self.group_loss(number, task_batch, self.processes))
        return losses

    def _group_weights(self, task: str, places: Sequence[int]) -> Tensor:
        """What the texts of each group weigh together. (group,)"""
        weights = self._text_weights(task, self._targets(task, places))
        groups = self.texts.groups[list(places)].to(self.device)  # (text,)
        no_weight = torch.zeros(self.texts.n_groups, device=self.device)
        return no_weight.index_add(0, groups, weights)

    def _targets(self, task: str, places: Sequence[int]) -> Tensor:
        return self.texts.targets[task][list(places)].to(self.device)

    def _text_losses(self, task: str, logits: Tensor, places: Sequence[int]) -> Tensor:
        """The loss of each text by its label and, where there is a teacher, by the teacher's
        answer. (text,)
        """
        targets = self._targets(task, places)
        by_label = text_losses(logits, targets, self.class_weights.get(task))
        if self.teacher is None:
            return by_label
        weights = self._text_weights(task, targets)
        return self.teacher.mix_in(by_label, logits, places, task, weights)

    def _text_weights(self, task: str, targets: Tensor) -> Tensor:
        """How much each text counts.

        A text without a label teaches nothing, unless a teacher has an answer to it. (text,)
        """
        weights = text_weights(targets, self.class_weights.get(task))
        if self.teacher is None:
            return weights
        return torch.where(has_label(targets), weights, 1.0)
