"""What every classification head has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from litotes.flow import Encoding


class Head(nn.Module, ABC):
    """Hidden states of packed texts → logits (text, n_outputs).

    firsts_only: the head reads nothing but each text's first piece, so the encoder may leave out the others in its last layer.
    """

    firsts_only: ClassVar[bool] = False

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, encoding: Encoding) -> Tensor:
        return self.output(self.dropout(self.read(encoding)))  # (text, n_outputs)

    @abstractmethod
    def read(self, encoding: Encoding) -> Tensor:
        """One vector per text. (text, width)"""
