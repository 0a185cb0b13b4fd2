"""entmax: keys too far behind the best get exactly no weight, and each attention head may learn how
far that is.

Peters, Niculae & Martins 2019 (arXiv 1905.05702); α learned per attention head: Correia, Niculae &
Martins 2019 (arXiv 1909.00015, §3).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.attention.weighting import RowRule, Weighting
from litotes.encoder.operations import TORCH, Operations, Value

FARTHEST = 4.6
"""The `a` at which a learned α stops, 1.01 and 1.99: beyond it the sigmoid is so flat that a head
could not return, and β = 1 / (α − 1) grows without bound.
"""


class Entmax(Weighting):
    """Sparse weights: w_k = [(α − 1) a_k − τ]₊^{1/(α−1)}, τ such that they sum to 1.

    alpha: 1 < α ≤ 2, the larger the sparser (2 is sparsemax), or "learned": α = 1 + sigmoid(a), one
    `a` per attention head.
    start: where a learned α begins.
    """

    def __init__(
        self, n_attention_heads: int, *, alpha: float | Literal["learned"] = 1.5, start: float = 1.2
    ) -> None:
        super().__init__(n_attention_heads)
        self.fixed = None if alpha == "learned" else _check_alpha(alpha)
        if self.fixed is None:
            self.a = nn.Parameter(torch.full((n_attention_heads,), _initial_a(start)))

    @property
    def alpha(self) -> Tensor:
        """The α in use, (attention_head,)."""
        if self.fixed is not None:
            return torch.full((self.n_attention_heads,), self.fixed)
        return 1 + self.a.clamp(-FARTHEST, FARTHEST).sigmoid()

    def row_rule(self, device: torch.device) -> RowRule:
        if self.fixed in (1.5, 2.0):
            return RowRule("squares" if self.fixed == 1.5 else "lines")
        if self.fixed is None:
            return RowRule("powers", alpha=self.alpha)
        # made on the device: a recorded pass must not copy from the host
        return RowRule(
            "powers", alpha=torch.full((self.n_attention_heads,), self.fixed, device=device)
        )

    def forward(
        self,
        affinity: Value,
        live: Value | None = None,
        heads: Value | None = None,
        *,
        ops: Operations = TORCH,
    ) -> Value:
        alpha = ops.per_head(self.alpha, heads) if self.fixed is None else self.fixed
        return ops.entmax(affinity, alpha, live)


def _check_alpha(alpha: float | str) -> float:
    if isinstance(alpha, str) or not 1 < alpha <= 2:
        raise UserError(
            f"The alpha of entmax is {alpha!r}. Give a number above 1 (near softmax) up to 2"
            ' (sparsemax), or "learned".'
        )
    return float(alpha)


def _initial_a(start: float) -> float:
    """The `a` from which α = 1 + sigmoid(a) starts."""
    lowest, highest = (1 + 1 / (1 + math.exp(-a)) for a in (-FARTHEST, FARTHEST))
    if not lowest < start < highest:
        raise UserError(
            f"A learned alpha of entmax cannot start at {start}. Give a start between 1.02 and"
            " 1.98."
        )
    return math.log((start - 1) / (2 - start))
