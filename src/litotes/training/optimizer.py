"""Adam and AdamW with a warm-up; biases and norms are not decayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Adam, AdamW, Optimizer

from litotes.training.settings import TrainingSettings

OPTIMIZERS: dict[str, type[Adam] | type[AdamW]] = {"adamw": AdamW, "adam": Adam}

OWN_RATE = 5e-3
"""For what a balancing, a weighting or a pruning learns: a few numbers that start far from their
place and have some hundred steps to get there.
"""

ATTENTION_MARKS = (".weighting.", "encoder.pruning.")
"""What marks the parameters of a weighting or a pruning."""


def make_optimizer(parameters: Mapping[str, Parameter], settings: TrainingSettings) -> Optimizer:
    """Parameters in groups: encoder, heads, attention or balancing, each decayed or not.

    `base_rate` is a group's rate at the top of the schedule.
    """
    # where many small launches cost more than the arithmetic
    on_cuda = all(parameter.is_cuda for parameter in parameters.values())
    groups = _parameter_groups(parameters, settings)
    optimizer = OPTIMIZERS[settings.optimizer](
        groups, lr=settings.learning_rate, fused=on_cuda, capturable=on_cuda
    )
    if on_cuda:
        keep_rates_on_device(optimizer)
    return optimizer


def keep_rates_on_device(optimizer: Optimizer) -> None:
    """A recorded step reads its learning rates where they lie."""
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], device=group["params"][0].device)


def _parameter_groups(
    parameters: Mapping[str, Parameter], settings: TrainingSettings
) -> list[dict[str, Any]]:
    rates = {
        "encoder": settings.learning_rate,
        "heads": settings.head_learning_rate or settings.learning_rate,
        "attention": OWN_RATE,
        "balancing": OWN_RATE,
    }
    groups = []
    for part, rate in rates.items():
        own = [parameter for name, parameter in parameters.items() if _part(name) == part]
        weights = [parameter for parameter in own if parameter.ndim > 1]
        biases_and_norms = [parameter for parameter in own if parameter.ndim <= 1]
        for chosen, decay in ((weights, settings.weight_decay), (biases_and_norms, 0.0)):
            if chosen:
                group = {"params": chosen, "lr": rate, "base_rate": rate, "weight_decay": decay}
                groups.append(group)
    return groups


def _part(name: str) -> str:
    return "attention" if any(mark in name for mark in ATTENTION_MARKS) else name.split(".")[0]


def set_learning_rate(
    optimizer: Optimizer, settings: TrainingSettings, *, step: int, n_steps: int
) -> None:
    """Sets the learning rate of step `step` (from 0) of `n_steps`; a pure function of the step, so
    resuming needs no state.
    """
    factor = rate_factor(settings, step=step, n_steps=n_steps)
    for group in optimizer.param_groups:
        rate = group["base_rate"] * factor
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def rate_factor(settings: TrainingSettings, *, step: int, n_steps: int) -> float:
    n_warmup = int(settings.warmup_share * n_steps)
    if step < n_warmup:
        return (step + 1) / n_warmup
    if settings.schedule == "constant":
        return 1.0
    return (n_steps - step) / (n_steps - n_warmup)
