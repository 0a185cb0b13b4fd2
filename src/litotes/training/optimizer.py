"""Adam and AdamW with a warm-up; biases and norms are not decayed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Adam, AdamW, Optimizer

from litotes.training.recipe import EncoderTraining

OPTIMIZERS: dict[str, type[Adam] | type[AdamW]] = {"adamw": AdamW, "adam": Adam}

OWN_RATE = 5e-3
"""For what a balancing or a pruning learns, and by default a weighting: a few numbers that start
far from their place and have some hundred steps to get there.
"""

_BLOCK = re.compile(r"encoder\.blocks\.(\d+)\.")
_BELOW_THE_BLOCKS = ("encoder.embeddings.", "encoder.relative_bias.")
"""The parameters that the first block reads already."""


def make_optimizer(parameters: Mapping[str, Parameter], settings: EncoderTraining) -> Optimizer:
    """Parameters in groups of one learning rate, each decayed or not.

    `base_rate` is a group's rate at the top of the schedule.
    """
    # where many small launches cost more than the arithmetic
    on_cuda = all(parameter.is_cuda for parameter in parameters.values())
    n_blocks = max([int(found[1]) + 1 for found in map(_BLOCK.match, parameters) if found] or [0])
    groups = parameter_groups(
        parameters, partial(_base_rate, settings=settings, n_blocks=n_blocks), settings.weight_decay
    )
    optimizer = OPTIMIZERS[settings.optimizer](
        groups, lr=settings.learning_rate, fused=on_cuda, capturable=on_cuda
    )
    for group in optimizer.param_groups if on_cuda else ():
        # a recorded step reads its learning rates where they lie
        group["lr"] = torch.tensor(group["lr"], device=group["params"][0].device)
    return optimizer


def parameter_groups(
    parameters: Mapping[str, Parameter], rate_of: Callable[[str], float], weight_decay: float
) -> list[dict[str, Any]]:
    """Parameters of one learning rate and decay together; biases and norms are not decayed."""
    groups: dict[tuple[float, float], list[Parameter]] = {}
    for name, parameter in parameters.items():
        decay = weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((rate_of(name), decay), []).append(parameter)
    return [
        {"params": chosen, "lr": rate, "base_rate": rate, "weight_decay": decay}
        for (rate, decay), chosen in groups.items()
    ]


def _base_rate(name: str, settings: EncoderTraining, n_blocks: int) -> float:
    if ".weighting." in name:
        return settings.weighting_learning_rate
    if name.startswith(("encoder.pruning.", "balancing.")):
        return OWN_RATE
    if name.startswith("heads."):
        return settings.head_learning_rate or settings.learning_rate
    n_above = 0
    if found := _BLOCK.match(name):
        n_above = n_blocks - 1 - int(found[1])
    elif name.startswith(_BELOW_THE_BLOCKS):
        n_above = n_blocks
    return settings.learning_rate * settings.layer_decay**n_above


def scale_rates(optimizer: Optimizer, factor: float) -> None:
    """Sets every group's learning rate to a share of its highest one."""
    for group in optimizer.param_groups:
        rate = group["base_rate"] * factor
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def rate_factor(settings: EncoderTraining, *, step: int, n_steps: int) -> float:
    """The share of the highest learning rates that step `step` (from 0) of `n_steps` takes."""
    n_warmup = int(settings.warmup_share * n_steps)
    if step < n_warmup:
        return (step + 1) / n_warmup
    if settings.schedule == "constant":
        return 1.0
    return (n_steps - step) / (n_steps - n_warmup)
