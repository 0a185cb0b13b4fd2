"""How a weighting tells the kernels what to do with a row of affinities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

LONGEST = 1024
"""The most pieces a text may have for its rows to lie on the chip whole."""


@dataclass(frozen=True)
class RowRule:
    """What the kernels compute, by name (kernels/rules.py).

    alpha: of each attention head, for `powers`. (attention_head,)
    kept: how many of n keys, or of n blocks of keys, a row keeps, for n from 0 to LONGEST. (n,)
    block: how many neighbours make a block.
    """

    name: str
    alpha: Tensor | None = None
    kept: Tensor | None = None
    block: int = 1

    @property
    def chooses(self) -> bool:
        """Whether some keys are chosen, and the others get nothing."""
        return self.kept is not None


@cache
def kept_counts(share: float, device: torch.device) -> Tensor:
    """⌈share × n⌉ for every n; 0.05 of 20 is 1, whatever floating point says. (n,)

    Kept for good: a recorded pass goes on reading it.
    """
    counts = [math.ceil(share * n - 1e-9) for n in range(LONGEST + 1)]
    return torch.tensor(counts, dtype=torch.int32).to(device)
