"""block_top_k: neighbouring queries keep whole blocks of neighbouring keys.

Crisp Attention, 2025, arXiv 2508.06016.

The sparsity is structured, so that a kernel can make use of it: a block of queries reads some
blocks of keys and none of the rest.
"""

from __future__ import annotations

import torch

from litotes.core.errors import UserError
from litotes.encoder.attention.rule import RowRule
from litotes.encoder.attention.top_k import SelectiveSoftmax
from litotes.encoder.operations import Operations, Value
from litotes.encoder.torch_operations import TORCH


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
        """Which keys lie in a block that their query's block keeps.

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
