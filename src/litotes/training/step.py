"""One step of training: from logits to new weights."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from litotes.core.registry import pick
from litotes.model.classifier import Classifier
from litotes.text.packing import TextSet
from litotes.training.balancing import BALANCINGS, Balancing
from litotes.training.checkpoints import RunTensors, trainable_parameters
from litotes.training.optimizer import make_optimizer
from litotes.training.processes import Processes
from litotes.training.settings import TrainingSettings
from litotes.training.task_losses import TaskLosses
from litotes.training.teacher import Teacher


@dataclass(frozen=True)
class StepInputs:
    """What a step reads besides the weights.

    logits: computes those of this process's texts, {task: (text, class)}.
    batch: the places of all texts of the batch; own: of this process's; −1: no text. (text,)
    """

    logits: Callable[[], dict[str, Tensor]]
    batch: Tensor
    own: Tensor


@dataclass(frozen=True)
class TrainingStep:
    """What all steps of a run share."""

    settings: TrainingSettings
    device: torch.device
    processes: Processes
    task_losses: TaskLosses
    balancing: Balancing
    tensors: RunTensors

    @classmethod
    def of(
        cls,
        classifier: Classifier,
        texts: TextSet,
        settings: TrainingSettings,
        *,
        device: torch.device,
        processes: Processes,
        teacher: Teacher | None = None,
    ) -> TrainingStep:
        """The step of a classifier that learns from these texts."""
        make_balancing = pick(BALANCINGS, settings.balancing, "balancing")
        balancing = make_balancing(len(classifier.tasks)).to(device)
        task_losses = TaskLosses(
            texts, classifier.tasks, settings, device=device, processes=processes, teacher=teacher
        )
        parameters = trainable_parameters(classifier)
        parameters |= trainable_parameters(balancing, "balancing.")
        buffers = dict(task_losses.group_loss.named_buffers())
        tensors = RunTensors(parameters, buffers, make_optimizer(parameters, settings))
        return cls(settings, device, processes, task_losses, balancing, tensors)

    def take(self, inputs: StepInputs, *, number: int) -> Tensor:
        """Changes the weights; gives this process's part of the loss, on the device.

        Nothing here waits for the device, where the balancing `repeats`.
        """
        optimizer = self.tensors.optimizer
        optimizer.zero_grad(set_to_none=True)
        with autocast(self.settings, self.device):
            logits = inputs.logits()
        losses = self.task_losses.of_batch(logits, batch=inputs.batch, own=inputs.own)
        total = torch.stack([loss.detach() for loss in losses]).sum()
        parameters = list(self.tensors.parameters.values())
        self.balancing.backward(losses, parameters, processes=self.processes, step=number)
        if self.settings.max_gradient_norm:
            clip_grad_norm_(parameters, self.settings.max_gradient_norm)
        optimizer.step()
        return total


def autocast(
    settings: TrainingSettings, device: torch.device
) -> torch.autocast | nullcontext[None]:
    """bfloat16 where the settings and the device allow it."""
    is_default = settings.precision == "auto" and device.type == "cuda"
    if is_default or settings.precision == "bfloat16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
