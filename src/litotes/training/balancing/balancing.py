"""What every balancing has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from torch import Tensor, nn
from torch.nn import Parameter

from litotes.training.processes import Processes


class Balancing(nn.Module, ABC):
    """Several tasks' losses → one gradient per parameter.

    A balancing may learn parameters of its own.
    """

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.n_tasks = n_tasks

    @property
    def repeats(self) -> bool:
        """Whether every step does the same with its losses, whatever its number, and nothing that
        the host decides: such a step can be recorded.
        """
        return True

    @abstractmethod
    def backward(
        self,
        parts: Iterable[Sequence[Tensor]],
        parameters: Sequence[Parameter],
        *,
        processes: Processes,
        step: int,
    ) -> None:
        """Fills every parameter's `.grad` with the step's direction, added up over the processes.

        parts: of the step's texts, computed as they are asked for: this process's share of each
        task's loss, which adds up over the parts. step: its number, for what is drawn at random.
        """
