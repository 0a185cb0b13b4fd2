"""From the logits of a batch to one loss per task: labels, class weights, the teacher, groups.

A batch is given by the places of its texts in the set; −1 stands for no text, which weighs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from litotes.core.values import MISSING, Task
from litotes.encoder.packing import TextSet
from litotes.training.groups import GROUP_LOSSES, TaskBatch, sum_by_group
from litotes.training.losses import has_label, task_weights, text_losses, text_weights
from litotes.training.processes import Processes
from litotes.training.settings import TrainingSettings
from litotes.training.teacher import Teacher


class TaskLosses:
    """The losses of a set of texts, whose labels lie on the device.

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
        self.device, self.processes = device, processes
        self.targets = {task: target.to(device) for task, target in texts.targets.items()}
        self.groups, self.n_groups = texts.groups.to(device), texts.n_groups
        self.teacher = None if teacher is None else teacher.to(device)
        weights = task_weights(texts.targets, tasks, balanced=settings.class_weights)
        self.class_weights = {task: weight.to(device) for task, weight in weights.items()}
        make_group_loss = GROUP_LOSSES[settings.groups]
        self.group_loss = make_group_loss(len(tasks), texts.n_groups, rate=settings.group_rate)
        self.group_loss.to(device)

    def send(self, places: Sequence[int]) -> Tensor:
        """Places on the device. (text,)"""
        return torch.tensor(places, dtype=torch.long).to(self.device, non_blocking=True)

    def of_batch(self, logits: Mapping[str, Tensor], *, batch: Tensor, own: Tensor) -> list[Tensor]:
        """This process's part of each task's loss.

        batch: the places of all texts of the batch; own: of those this process has logits of.
        """
        losses = []
        for number, (task, values) in enumerate(logits.items()):
            weights = self._text_weights(task, batch)
            task_batch = TaskBatch(
                self._text_losses(task, values, own),
                self._groups(own),
                sum_by_group(weights, self._groups(batch), self.n_groups),
            )
            losses.append(self.group_loss(number, task_batch, self.processes))
        return losses

    def _groups(self, places: Tensor) -> Tensor:
        return self.groups[places.clamp(min=0)]

    def _targets(self, task: str, places: Tensor) -> Tensor:
        """(text,), of several labels (text, class)"""
        targets = self.targets[task][places.clamp(min=0)]
        no_label = math.nan if targets.is_floating_point() else MISSING
        is_nobody = places < 0
        return targets.masked_fill(is_nobody[:, None] if targets.ndim == 2 else is_nobody, no_label)

    def _text_losses(self, task: str, logits: Tensor, places: Tensor) -> Tensor:
        """The loss of each text by its label and, where there is a teacher, by the teacher's
        answer. (text,)
        """
        targets = self._targets(task, places)
        by_label = text_losses(logits, targets, self.class_weights.get(task))
        if self.teacher is None:
            return by_label
        weights = self._text_weights(task, places)
        return self.teacher.mix_in(by_label, logits, places.clamp(min=0), task, weights)

    def _text_weights(self, task: str, places: Tensor) -> Tensor:
        """How much each text counts.

        A text without a label teaches nothing, unless a teacher has an answer to it. (text,)
        """
        targets = self._targets(task, places)
        weights = text_weights(targets, self.class_weights.get(task))
        if self.teacher is None:
            return weights
        mixed = self.teacher.text_weights(weights, has_label(targets), places.clamp(min=0), task)
        return mixed.masked_fill(places < 0, 0.0)
