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

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.values import MISSING, Task
from litotes.encoder.packing import TextSet
from litotes.training.processes import Processes
from litotes.training.recipe import TrainingSettings


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


# Groups of texts (varieties, say) that must not be left behind: how the texts of a batch become
# one loss.


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


@dataclass(frozen=True)
class Teacher:
    """What another model answers to every training text, and how much it counts against the labels.

        l_i = (1 − share) · l_label + share · w_i · T² KL(softmax(t_i / T) ‖ softmax(s_i / T))

    logits: {task: (text, class)}; for a regression one number a text, imitated by squared error.
    """

    logits: Mapping[str, Tensor]
    share: float
    temperature: float = 2.0

    def to(self, device: torch.device) -> Teacher:
        return replace(self, logits={task: some.to(device) for task, some in self.logits.items()})

    def mix_in(
        self,
        losses: Tensor,
        logits: Tensor,
        places: Tensor | list[int],
        task: str,
        weights: Tensor,
    ) -> Tensor:
        """The losses (text,) of the labels and those of the teacher's answers to the texts at
        `places`, together.
        """
        wanted = self.logits[task][places]
        return (1 - self.share) * losses + self.share * weights * self.differences(
            logits.float(), wanted
        )

    def text_weights(self, by_label: Tensor, labelled: Tensor, places: Tensor, task: str) -> Tensor:
        """How much each text counts: as its label does, or 1 without one. (text,)"""
        return torch.where(labelled, by_label, 1.0)

    def differences(self, logits: Tensor, wanted: Tensor) -> Tensor:
        """How far each text's answer is from the teacher's. (text,)"""
        if logits.shape[-1] == 1:
            return (logits - wanted).square().squeeze(-1)
        heat = self.temperature
        student, teacher = (logits / heat).log_softmax(-1), (wanted / heat).log_softmax(-1)
        return heat**2 * functional.kl_div(student, teacher, reduction="none", log_target=True).sum(
            -1
        )


@dataclass(frozen=True)
class SoftAnswers(Teacher):
    """Answers p_i that not every text has, mixed with the labels before classes are weighted.

        m_i = (1 − s_i) · 1[y_i] + s_i · p_i          s_i = share; 1 without a label, 0 without p_i
        l_i = −Σ_c w_c m_ic log q_ic

    With W_i = Σ_c w_c p_ic the part of the answer is that of a text of weight W_i whose answer
    leans as weighted labels do, and takes a temperature (T = 1: the same but for a constant):

        l_i = (1 − s_i) w_{y_i} (−log q_i[y_i]) + s_i W_i T² KL(softmax(t_i / T) ‖ q_i(T))
        t_ic = log(w_c p_ic / W_i)

    logits: t. shares: s. weights: W. Each {task: (text, …)}.
    """

    shares: Mapping[str, Tensor] | None = None
    weights: Mapping[str, Tensor] | None = None

    def to(self, device: torch.device) -> SoftAnswers:
        shares, weights = self._parts()
        return replace(
            self,
            logits=_send(self.logits, device),
            shares=_send(shares, device),
            weights=_send(weights, device),
        )

    def mix_in(
        self,
        losses: Tensor,
        logits: Tensor,
        places: Tensor | list[int],
        task: str,
        weights: Tensor,
    ) -> Tensor:
        shares, own = (part[task][places] for part in self._parts())  # (text,)
        # a place without a text has no weight
        own = own.masked_fill(weights == 0, 0.0)
        differences = self.differences(logits.float(), self.logits[task][places])
        return (1 - shares) * losses + shares * own * differences

    def text_weights(self, by_label: Tensor, labelled: Tensor, places: Tensor, task: str) -> Tensor:
        shares, own = (part[task][places] for part in self._parts())  # (text,)
        return (1 - shares) * by_label + shares * own

    def _parts(self) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        assert self.shares is not None
        assert self.weights is not None
        return self.shares, self.weights


def _send(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {task: tensor.to(device) for task, tensor in tensors.items()}


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
