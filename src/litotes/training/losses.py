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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.values import MISSING, Task
from litotes.encoder.packing import TextSet
from litotes.training.processes import Processes
from litotes.training.recipe import TrainingSettings


def class_weights(targets: Tensor, task: Task) -> Tensor:
    """Inverse frequencies of classes (class,), or of no and yes for each label (class, answer).

    They are 1 on average over the texts; what never occurs gets 0.
    """
    total: float | Tensor
    labelled = targets[has_label(targets)]
    if task.multi_label:
        n_yes = labelled.sum(0)
        # (class, answer); a number divided by a tensor is rounded twice, a tensor once
        counts, total = torch.stack([len(labelled) - n_yes, n_yes], -1), len(labelled)
    else:
        counts = torch.bincount(labelled, minlength=len(task.labels))  # (class,)
        total = counts.sum()
    n_seen = (counts > 0).sum(-1, keepdim=True).clamp(min=1)
    return torch.where(counts > 0, total / (n_seen * counts.clamp(min=1)), 0.0)


def task_weights(
    targets: Mapping[str, Tensor], tasks: Mapping[str, Task], *, balanced: bool
) -> dict[str, Tensor]:
    """Class weights per classification task; all ones where classes are not to be balanced."""
    weights = {
        name: class_weights(targets[name], task)
        for name, task in tasks.items()
        if not task.is_regression
    }
    return weights if balanced else {name: torch.ones_like(one) for name, one in weights.items()}


def has_label(targets: Tensor) -> Tensor:
    """Tells which texts carry a label. (text,)"""
    if targets.ndim == 2:
        return ~targets.isnan().any(-1)
    return ~targets.isnan() if targets.is_floating_point() else targets != MISSING


def text_weights(targets: Tensor, weights: Tensor | None) -> Tensor:
    """Weighs each text: by its class's weight; 0 without a label; 1 for a number. (text,)"""
    if weights is None:
        return has_label(targets).float()
    if targets.ndim == 2:
        return _weights_of_each(targets, weights).mean(-1)
    return torch.where(has_label(targets), weights[targets.clamp(min=0)], 0.0)


def text_losses(logits: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
    """Each text's weighted loss; 0 without a label.

    logits (text, class), targets (text,) or (text, class) → (text,)
    """
    logits = logits.float()
    if weights is None:
        squares = (logits.squeeze(-1) - targets.nan_to_num()).square()
        return squares * text_weights(targets, None)
    if targets.ndim == 2:
        each = functional.binary_cross_entropy_with_logits(
            logits, targets.nan_to_num(), reduction="none"
        )
        return (each * _weights_of_each(targets, weights)).mean(-1)
    return functional.cross_entropy(
        logits, targets, weight=weights, ignore_index=MISSING, reduction="none"
    )


def _weights_of_each(targets: Tensor, weights: Tensor) -> Tensor:
    """Weighs each answer; 0 without a label. weights: (class, answer) → (text, class)"""
    no, yes = weights.unbind(-1)
    return torch.where(targets.isnan(), 0.0, torch.where(targets > 0, yes, no))


# Groups of texts (varieties, say) that must not be left behind: how the texts of a batch become
# one loss.


def sum_by_group(values: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """The sum over each group's texts. values, groups: (text,) → (group,)"""
    if values.is_cuda:
        # adds in order, where index_add adds in a race: the same bytes every time
        numbers = torch.arange(n_groups, device=values.device)[:, None]
        return torch.where(groups == numbers, values, 0.0).sum(1)
    return values.new_zeros(n_groups).index_add(0, groups, values)


class MeanLoss(nn.Module):
    """No groups: every text counts alike, L = Σ_i l_i / Σ_i w_i."""

    def __init__(self, n_tasks: int, n_groups: int, *, rate: float) -> None:
        super().__init__()

    def forward(
        self, task: int, losses: Tensor, groups: Tensor, weights: Tensor, processes: Processes
    ) -> Tensor:
        """One task's losses in a batch → its loss.

        losses, groups: of this process's texts (text,); weights: of the whole batch (group,).
        """
        return losses.sum() / weights.sum().clamp(min=1e-12)


class GroupDRO(MeanLoss):
    """Groups that do badly gain weight: q_g ← q_g · exp(η L_g) / Σ, L = Σ_g q_g L_g.

    Sagawa et al. 2020, arXiv 1911.08731, algorithm 1.

    L_g is the loss of the group's texts in the batch; q starts level; each task has its own, saved
    with the run. η is `rate`.
    """

    def __init__(self, n_tasks: int, n_groups: int, *, rate: float) -> None:
        super().__init__(n_tasks, n_groups, rate=rate)
        self.rate = rate
        self.shares: Tensor  # q (task, group)
        self.register_buffer("shares", torch.full((n_tasks, n_groups), 1 / n_groups))

    def forward(
        self, task: int, losses: Tensor, groups: Tensor, weights: Tensor, processes: Processes
    ) -> Tensor:
        # (group,); 0 for a group that the batch has none of
        by_group = sum_by_group(losses, groups, len(weights)) / weights.clamp(min=1e-12)
        whole = by_group.detach().clone()
        processes.add_up([whole])
        # the same as q · exp(η L) / Σ, without the overflow that a regression's large losses would
        # bring
        self.shares[task] = torch.softmax(self.shares[task].log() + self.rate * whole, dim=0)
        return self.shares[task].clone() @ by_group


GROUP_LOSSES: dict[str, type[MeanLoss]] = {"none": MeanLoss, "group_dro": GroupDRO}


# Teachers: other models whose answers are imitated besides the labels.


@dataclass(frozen=True)
class Teacher:
    """Another model's answers to every training text, and how much they count against the labels.

        l_i = (1 − share) · l_label + share · w_i · T² KL(softmax(t_i / T) ‖ softmax(s_i / T))

    logits: {task: (text, class)}; for a regression one number a text, imitated by squared error.
    """

    logits: Mapping[str, Tensor]
    share: float
    temperature: float = 2.0

    def weigh(self, task: str, by_label: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Factors of the loss by label and of that by answer, and what each text weighs: as its
        label does, or 1 without one. (text,) each

        by_label: the weights of the labels (text,); labelled: which texts have one (text,).
        """
        weights = torch.where(labelled, by_label, 1.0)
        return torch.full_like(weights, 1 - self.share), self.share * weights, weights

    def differences(self, logits: Tensor, wanted: Tensor) -> Tensor:
        """Measures how far each text's answer is from the teacher's. (text,)"""
        if logits.shape[-1] == 1:
            return (logits - wanted).square().squeeze(-1)
        student, teacher = ((one / self.temperature).log_softmax(-1) for one in (logits, wanted))
        divergence = functional.kl_div(student, teacher, reduction="none", log_target=True).sum(-1)
        return self.temperature**2 * divergence


@dataclass(frozen=True, kw_only=True)
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

    shares: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]

    def weigh(self, task: str, by_label: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shares = self.shares[task].to(by_label.device)
        taught = shares * self.weights[task].to(by_label.device)
        return 1 - shares, taught, (1 - shares) * by_label + taught


class TaskLosses:
    """The losses of a set of texts, whose labels lie on the device.

    Behind the last text stands one more, of padding, without label, weight and answer; place
    −1 is its. teacher: answers to imitate in addition to the labels.
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
        self.device, self.processes, self.teacher = device, processes, teacher
        self.groups, self.n_groups = _with_nobody(texts.groups.to(device), 0), texts.n_groups
        weights = task_weights(texts.targets, tasks, balanced=settings.class_weights)
        self.class_weights = {task: weight.to(device) for task, weight in weights.items()}
        self.targets: dict[str, Tensor] = {}  # (text,), of several labels (text, class)
        self.text_weights: dict[str, Tensor] = {}  # (text,)
        self.answers: dict[str, tuple[Tensor, ...]] = {}  # a teacher's, with both factors
        for task, labels in texts.targets.items():
            self._lay_out(task, labels.to(device))
        self.group_loss = GROUP_LOSSES[settings.groups](
            len(tasks), texts.n_groups, rate=settings.group_rate
        ).to(device)

    def _lay_out(self, task: str, targets: Tensor) -> None:
        """Keeps what the loss of a task needs of every text, and of padding."""
        weights = text_weights(targets, self.class_weights.get(task))  # (text,)
        if self.teacher is not None:
            # a text without a label teaches nothing, unless a teacher has an answer to it
            *factors, weights = self.teacher.weigh(task, weights, has_label(targets))
            wanted = self.teacher.logits[task].to(self.device)
            self.answers[task] = tuple(_with_nobody(one, 0) for one in (wanted, *factors))
        no_label = math.nan if targets.is_floating_point() else MISSING
        self.targets[task] = _with_nobody(targets, no_label)
        self.text_weights[task] = _with_nobody(weights, 0)

    def send(self, places: Sequence[int]) -> Tensor:
        """Places on the device. (text,)"""
        return torch.tensor(places, dtype=torch.long).to(self.device, non_blocking=True)

    def of_batch(self, logits: Mapping[str, Tensor], *, batch: Tensor, own: Tensor) -> list[Tensor]:
        """This process's part of each task's loss.

        batch: the places of all texts of the batch; own: of those this process has logits of.
        """
        losses = []
        for number, (task, values) in enumerate(logits.items()):
            of_texts = self._text_losses(task, values, own)
            weights = self.text_weights[task][batch]  # (text,)
            by_group = sum_by_group(weights, self.groups[batch], self.n_groups)
            groups = self.groups[own]
            losses.append(self.group_loss(number, of_texts, groups, by_group, self.processes))
        return losses

    def _text_losses(self, task: str, logits: Tensor, places: Tensor) -> Tensor:
        """The loss of each text by its label and, where there is a teacher, by the teacher's
        answer. (text,)
        """
        targets = self.targets[task][places]
        by_label = text_losses(logits, targets, self.class_weights.get(task))
        if self.teacher is None:
            return by_label
        wanted, kept, taught = (tensor[places] for tensor in self.answers[task])
        return kept * by_label + taught * self.teacher.differences(logits.float(), wanted)


def _with_nobody(values: Tensor, nothing: float) -> Tensor:
    """The values (text, …) and a last one that stands for no text."""
    return torch.cat([values, torch.full_like(values[:1], nothing)])
