"""Where each text lies in a packed tensor.

Texts are laid end to end along the first axis, `(piece, …)`, with their lengths alongside:
nothing is padded. Three texts of 3, 1 and 2 pieces:

    piece      0 1 2 | 3 | 4 5
    text       0 0 0 | 1 | 2 2
    position   0 1 2 | 0 | 0 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """The lengths of packed texts, and the index tensors that follow, made once on `device`."""

    lengths: tuple[int, ...]
    device: torch.device

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device | str = "cpu") -> Layout:
        return cls(tuple(lengths), torch.device(device))

    @property
    def n_texts(self) -> int:
        return len(self.lengths)

    @property
    def n_pieces(self) -> int:
        return sum(self.lengths)

    @property
    def longest(self) -> int:
        return max(self.lengths)

    @cached_property
    def counts(self) -> Tensor:
        """Lengths as a tensor. (text,)"""
        return torch.tensor(self.lengths, dtype=torch.long).to(self.device, non_blocking=True)

    @cached_property
    def starts(self) -> Tensor:
        """The place of each text's first piece. (text,)"""
        ends = torch.tensor(self.lengths, dtype=torch.long).cumsum(0)
        return (ends - torch.tensor(self.lengths)).to(self.device, non_blocking=True)

    @cached_property
    def texts(self) -> Tensor:
        """The text each piece belongs to. (piece,)"""
        text = torch.arange(self.n_texts).repeat_interleave(
            torch.tensor(self.lengths), output_size=self.n_pieces
        )
        return text.to(self.device, non_blocking=True)

    @cached_property
    def positions(self) -> Tensor:
        """Each piece's place in its own text. (piece,)"""
        return torch.arange(self.n_pieces, device=self.device) - self.starts[self.texts]

    @cached_property
    def firsts(self) -> Layout:
        """The layout of the first pieces alone."""
        return Layout((1,) * self.n_texts, self.device)
