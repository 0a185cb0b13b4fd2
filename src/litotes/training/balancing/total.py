"""sum: the tasks' losses added up."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from litotes.training.balancing.balancing import Balancing
from litotes.training.processes import Processes


class Total(Balancing):
    """L = Σ_k L_k: every task counts alike."""

    def backward(
        self,
        losses: Sequence[Tensor],
        parameters: Sequence[Parameter],
        *,
        processes: Processes,
        step: int,
    ) -> None:
        torch.stack(list(losses)).sum().backward()
        processes.add_up(parameter.grad for parameter in parameters)
