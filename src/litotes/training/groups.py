"""Groups of texts (varieties, say) that must not be left behind: how the texts of a batch become
one loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from litotes.training.processes import Processes


@dataclass(frozen=True)
class TaskBatch:
    """One task in a batch: the losses (text,) and groups (text,) of this process's texts, and what
    the whole batch weighs (group,).
    """

    losses: Tensor
    groups: Tensor
    weights: Tensor


def sum_by_group(values: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """The sum over each group's texts. values, groups: (text,) → (group,)"""
    if values.is_cuda:
        # adds in order, where index_add adds in a race: the same bytes every time
        numbers = torch.arange(n_groups, device=values.device)[:, None]
        return torch.where(groups == numbers, values, 0.0).sum(1)
    return values.new_zeros(n_groups).index_add(0, groups, values)


class GroupLoss(nn.Module, ABC):
    """One task's losses in a batch → its loss.

    What it keeps of the groups is saved with the run.
    """

    def __init__(self, n_tasks: int, n_groups: int, *, rate: float) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, task: int, batch: TaskBatch, processes: Processes) -> Tensor: ...


class MeanLoss(GroupLoss):
    """No groups: every text counts alike, L = Σ_i w_i l_i / Σ_i w_i."""

    def forward(self, task: int, batch: TaskBatch, processes: Processes) -> Tensor:
        return batch.losses.sum() / batch.weights.sum().clamp(min=1e-12)


class GroupDRO(GroupLoss):
    """Groups that do badly gain weight: q_g ← q_g · exp(η L_g) / Σ, L = Σ_g q_g L_g.

    Sagawa et al. 2020, arXiv 1911.08731, algorithm 1.

    L_g is the loss of the group's texts in the batch; q starts level; each task has its own. η is
    `rate`.
    """

    def __init__(self, n_tasks: int, n_groups: int, *, rate: float) -> None:
        super().__init__(n_tasks, n_groups, rate=rate)
        self.rate = rate
        self.shares: Tensor  # q (task, group)
        self.register_buffer("shares", torch.full((n_tasks, n_groups), 1 / n_groups))

    def forward(self, task: int, batch: TaskBatch, processes: Processes) -> Tensor:
        summed = sum_by_group(batch.losses, batch.groups, len(batch.weights))
        # (group,); 0 for a group that the batch has none of
        by_group = summed / batch.weights.clamp(min=1e-12)
        whole = by_group.detach().clone()
        processes.add_up([whole])
        # the same as q · exp(η L) / Σ, without the overflow that a regression's large losses would
        # bring
        self.shares[task] = torch.softmax(self.shares[task].log() + self.rate * whole, dim=0)
        return self.shares[task].clone() @ by_group


GROUP_LOSSES: dict[str, type[GroupLoss]] = {"none": MeanLoss, "group_dro": GroupDRO}
