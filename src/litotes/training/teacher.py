"""A model to imitate. Hinton et al. 2015, arXiv 1503.02531."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional


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
