"""sum: the tasks' losses added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from litotes.training.balancing.balancing import Balancing
from litotes.training.processes import Processes


class Total(Balancing):
    """L = Σ_k L_k: every task counts alike."""

    def backward(
        self,
        parts: Iterable[Sequence[Tensor]],
        parameters: Sequence[Parameter],
        *,
        processes: Processes,
        step: int,
    ) -> None:
        for losses in parts:
            torch.stack(list(losses)).sum().backward()
        processes.add_up(parameter.grad for parameter in parameters)
