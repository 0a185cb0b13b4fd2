"""One step of training: from logits to new weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.encoder.packing import TextSet
from litotes.model.classifier import Classifier
from litotes.training.balancing import BALANCINGS, Balancing
from litotes.training.checkpoints import RunTensors, trainable_parameters
from litotes.training.optimizer import make_optimizer
from litotes.training.processes import Processes
from litotes.training.settings import TrainingSettings
from litotes.training.task_losses import TaskLosses
from litotes.training.teacher import Teacher


@dataclass(frozen=True)
class StepInputs:
    """What a step, or a part of one, reads besides the weights.

    logits: computes those of this part's texts, {task: (text, class)}.
    batch: the places of all texts of the batch; own: of this part's; −1: no text. (text,)
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
        if settings.pieces_at_once is not None and settings.groups != "none":
            raise UserError(
                f"pieces_at_once does not go with groups = {settings.groups}, which weighs a batch"
                " by the losses of all its texts. Leave one of them out."
            )
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

    def take(self, *parts: StepInputs, number: int) -> Tensor:
        """Changes the weights; gives this process's part of the loss, on the device.

        parts: of this process's texts, computed one after the other; the losses have the whole
        batch's normalisers, so that the step is the same however it is divided.
        Nothing here waits for the device, where the balancing `repeats`.
        """
        optimizer = self.tensors.optimizer
        optimizer.zero_grad(set_to_none=True)
        totals: list[Tensor] = []

        def losses_of_parts() -> Iterator[list[Tensor]]:
            for part in parts:
                with autocast(self.settings, self.device):
                    logits = part.logits()
                losses = self.task_losses.of_batch(logits, batch=part.batch, own=part.own)
                totals.append(torch.stack([loss.detach() for loss in losses]).sum())
                yield losses

        parameters = list(self.tensors.parameters.values())
        self.balancing.backward(
            losses_of_parts(), parameters, processes=self.processes, step=number
        )
        if self.settings.max_gradient_norm:
            clip_grad_norm_(parameters, self.settings.max_gradient_norm)
        optimizer.step()
        return torch.stack(totals).sum()


@contextmanager
def same_products_after() -> Iterator[None]:
    """Leaves oneDNN as it was. Where a processor has no bfloat16 products, torch leaves it for good
    after the first, in float32 as well: what the process computes later would be added up otherwise
    than in another.
    """
    was_enabled = torch.backends.mkldnn.enabled
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = was_enabled


def autocast(
    settings: TrainingSettings, device: torch.device
) -> torch.autocast | nullcontext[None]:
    """bfloat16 where the settings and the device allow it."""
    is_default = settings.precision == "auto" and device.type == "cuda"
    if is_default or settings.precision == "bfloat16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
