"""top_k: each query keeps its best keys, chosen before normalising.

Crisp Attention, 2025, arXiv 2508.06016.
"""

from __future__ import annotations

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.attention.rule import RowRule, kept_counts
from litotes.encoder.attention.weighting import Weighting
from litotes.encoder.operations import Operations, Value
from litotes.encoder.torch_operations import TORCH

SPARSEST = 0.95


class SelectiveSoftmax(Weighting):
    """Softmax over some of the live keys; `sparsity` is the share of them that gets no weight.

    ramp: the share of the training over which the sparsity rises from 0; evaluation always sees all
    of it.
    """

    def __init__(self, n_attention_heads: int, *, sparsity: float = 0.5, ramp: float = 0.0) -> None:
        super().__init__(n_attention_heads)
        if not 0 <= sparsity <= SPARSEST:
            raise UserError(
                f"The sparsity of attention is {sparsity}. Give the share of keys to leave out,"
                f" from 0 to {SPARSEST}."
            )
        if not 0 <= ramp <= 1:
            raise UserError(
                f"The ramp of attention's sparsity is {ramp}. Give the share of the training it"
                " takes, from 0 to 1."
            )
        self.sparsity, self.ramp = sparsity, ramp

    @property
    def is_settled(self) -> bool:
        return self.progress >= self.ramp

    @property
    def sparsity_now(self) -> float:
        if not self.training or not self.ramp:
            return self.sparsity
        return self.sparsity * min(1.0, self.progress / self.ramp)

    def kept_counts(self, device: torch.device) -> Tensor:
        """How many of n are among the best, for every n. (n,)"""
        return kept_counts(1 - self.sparsity_now, device)


class TopK(SelectiveSoftmax):
    """The best keys of each query: softmax over the ⌈(1 − sparsity) × live keys⌉ largest affinities
    of its row.
    """

    def row_rule(self, device: torch.device) -> RowRule:
        return RowRule("top_k", kept=self.kept_counts(device))

    def forward(
        self,
        affinity: Value,
        live: Value | None = None,
        heads: Value | None = None,
        *,
        ops: Operations = TORCH,
    ) -> Value:
        return ops.softmax(affinity, ops.best(affinity, live, 1 - self.sparsity_now))
