"""What every classification head has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from torch import Tensor, nn

from litotes.encoder.encoding import Encoding


class Head(nn.Module, ABC):
    """Hidden states of packed texts → logits (text, n_outputs), for one task.

    With several tasks each has a head of its own.

    firsts_only: the head reads only each text's first piece, so the encoder may leave out the
    others in its last layer.
    needs_lengths: the head has to know on the host how long the texts are.
    """

    firsts_only: ClassVar[bool] = False
    needs_lengths: ClassVar[bool] = False

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, n_outputs)

    @classmethod
    def for_tasks(cls, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> HeadPerTask:
        return HeadPerTask({task: cls(width, n, dropout=dropout) for task, n in n_outputs.items()})

    def forward(self, encoding: Encoding) -> Tensor:
        return self.output(self.dropout(self.read(encoding)))  # (text, n_outputs)

    @abstractmethod
    def read(self, encoding: Encoding) -> Tensor:
        """One vector per text. (text, width)"""


class HeadPerTask(nn.ModuleDict):
    """Hidden states → logits {task: (text, n_outputs)}, each task read by a head of its own."""

    def forward(self, encoding: Encoding) -> dict[str, Tensor]:
        return {task: head(encoding) for task, head in self.items()}


class JointHead(nn.Module, ABC):
    """Hidden states → logits {task: (text, n_outputs)}, the tasks read together."""

    firsts_only: ClassVar[bool] = False
    needs_lengths: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> None:
        super().__init__()

    @classmethod
    def for_tasks(cls, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> Self:
        return cls(width, n_outputs, dropout=dropout)

    @abstractmethod
    def forward(self, encoding: Encoding) -> dict[str, Tensor]: ...
