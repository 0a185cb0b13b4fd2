"""top_k: each query keeps its best keys, chosen before normalising.

Crisp Attention, 2025, arXiv 2508.06016.
"""

from __future__ import annotations

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.attention.weighting import RowRule, Weighting, kept_counts
from litotes.encoder.operations import TORCH, Operations, Value

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
        """Counts how many of n are among the best, for every n. (n,)"""
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


# block_top_k: neighbouring queries keep whole blocks of neighbouring keys.
#
# Crisp Attention, 2025, arXiv 2508.06016.
#
# The sparsity is structured, so that a kernel can make use of it: a block of queries reads some
# blocks of keys and none of the rest.


class BlockTopK(SelectiveSoftmax):
    """The best blocks of keys for each block of queries: softmax over the ⌈(1 − sparsity) × live
    blocks⌉ that softmax gives most weight.

    block: how many neighbouring keys, and queries, make a block. A text's first piece is a block of
    queries by itself: a classification head may ask for its row alone, and it has to be the same
    row.

    Where live keys differ from query to query (local layers), a query that can read none of its
    block's keys reads all it can.
    """

    rows_alone = False

    def __init__(
        self, n_attention_heads: int, *, sparsity: float = 0.5, block: int = 4, ramp: float = 0.0
    ) -> None:
        super().__init__(n_attention_heads, sparsity=sparsity, ramp=ramp)
        if block < 1:
            raise UserError(
                f"A block of keys cannot have {block} of them. Give a block of 1 or more."
            )
        self.block = block

    def row_rule(self, device: torch.device) -> RowRule | None:
        """Blocks of 1, 2, 4, 8 or 16: others do not fill a tile of queries."""
        if self.block not in (1, 2, 4, 8, 16):
            return None
        return RowRule("block_top_k", kept=self.kept_counts(device), block=self.block)

    def forward(
        self,
        affinity: Value,
        live: Value | None = None,
        heads: Value | None = None,
        *,
        ops: Operations = TORCH,
    ) -> Value:
        live = ops.live_like(affinity, live)
        with torch.no_grad():
            chosen = ops.both(self._choose_keys(ops, affinity, live), live)
            chosen = ops.where(ops.any(chosen), chosen, live)
        return ops.softmax(affinity, chosen)

    def _choose_keys(self, ops: Operations, affinity: Value, live: Value) -> Value:
        """Tells which keys lie in a block that their query's block keeps.

        (text, attention_head, query, key)
        """
        # queries past a text's end are padding and have no say
        weights = ops.softmax(affinity, live) * ops.real_queries(affinity, live)
        query_block, of_queries = ops.blocks(affinity, -2, self.block, first_alone=True)
        key_block, of_keys = ops.blocks(affinity, -1, self.block, first_alone=False)
        # (text, attention_head, query_block, key_block)
        mass = ops.block_sums(weights, of_queries, of_keys)
        n_live = ops.block_sums(live, of_queries, of_keys)
        kept = ops.best(mass, n_live > 0, 1 - self.sparsity_now)
        return ops.take(ops.take(kept, query_block, -2), key_block, -1)
