"""uncertainty: noisy tasks count less. Kendall, Gal and Cipolla 2018, arXiv 1705.07115, §3.2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from litotes.training.balancing.balancing import Balancing
from litotes.training.processes import Processes


class Uncertainty(Balancing):
    """L = Σ_k exp(−s_k) L_k + s_k / 2 with s_k = log σ_k², a task's noise, learned beside the model
    from s_k = 0.
    """

    def __init__(self, n_tasks: int) -> None:
        super().__init__(n_tasks)
        self.log_variances = nn.Parameter(torch.zeros(n_tasks))

    def backward(
        self,
        parts: Iterable[Sequence[Tensor]],
        parameters: Sequence[Parameter],
        *,
        processes: Processes,
        step: int,
    ) -> None:
        for number, losses in enumerate(parts):
            total = torch.exp(-self.log_variances) * torch.stack(list(losses))
            if number == 0:  # once a step; every process adds its share of it
                total = total + self.log_variances / (2 * processes.n)
            total.sum().backward()
        processes.add_up(parameter.grad for parameter in parameters)
