"""top_k: each query keeps its best keys, chosen before normalising.

Crisp Attention, 2025, arXiv 2508.06016.
"""

from __future__ import annotations

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.attention.rule import RowRule, kept_counts
from litotes.encoder.attention.softmax import softmax_over
from litotes.encoder.attention.weighting import Weighting

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

    def best(self, scores: Tensor, live: Tensor) -> Tensor:
        """Whether a score is among the ⌈(1 − sparsity) × live⌉ highest live ones of its row; of
        equals the earlier one is.
        """
        n_live = live.sum(-1, keepdim=True, dtype=torch.float64)
        # A sparsity of 0.95 leaves one key of 20, not the two that 0.05 × 20 = 1.0000000000000009
        # would give.
        n_kept = torch.ceil((1 - self.sparsity_now) * n_live - 1e-9)  # (…, row, 1)
        ranked = scores.detach().masked_fill(~live, -torch.inf)
        order = ranked.argsort(dim=-1, descending=True, stable=True)
        places = torch.arange(scores.shape[-1], device=scores.device)
        return torch.zeros_like(live).scatter(-1, order, places < n_kept)


class TopK(SelectiveSoftmax):
    """The best keys of each query: softmax over the ⌈(1 − sparsity) × live keys⌉ largest affinities
    of its row.
    """

    def row_rule(self, device: torch.device) -> RowRule:
        return RowRule("top_k", kept=self.kept_counts(device))

    def forward(
        self, affinity: Tensor, live: Tensor | None = None, heads: Tensor | None = None
    ) -> Tensor:
        return softmax_over(affinity, self.best(affinity, expand_live(affinity, live)))


def expand_live(affinity: Tensor, live: Tensor | None) -> Tensor:
    """Which keys are live, in the shape of `affinity`."""
    if live is None:
        return torch.ones_like(affinity, dtype=torch.bool)
    return live.expand_as(affinity)
