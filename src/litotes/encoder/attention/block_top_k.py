"""block_top_k: neighbouring queries keep whole blocks of neighbouring keys.

Crisp Attention, 2025, arXiv 2508.06016.

The sparsity is structured, so that a kernel can make use of it: a block of queries reads some
blocks of keys and none of the rest.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.encoder.attention.rule import RowRule
from litotes.encoder.attention.softmax import softmax_over
from litotes.encoder.attention.top_k import SelectiveSoftmax, expand_live


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
        self, affinity: Tensor, live: Tensor | None = None, heads: Tensor | None = None
    ) -> Tensor:
        live = expand_live(affinity, live)
        with torch.no_grad():
            chosen = self._choose_keys(affinity, live) & live
            chosen = torch.where(chosen.any(-1, keepdim=True), chosen, live)
        return softmax_over(affinity, chosen)

    def _choose_keys(self, affinity: Tensor, live: Tensor) -> Tensor:
        """Which keys lie in a block that their query's block keeps.

        (text, attention_head, query, key)
        """
        n_queries, n_keys = affinity.shape[-2:]
        weights = softmax_over(affinity.float(), live)
        # Self-attention of whole texts: queries past a text's end are padding and have no say.
        if n_queries == n_keys:
            weights = weights * live.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        query_block, of_queries = self._blocks(n_queries, weights, first_alone=True)
        key_block, of_keys = self._blocks(n_keys, weights, first_alone=False)
        mass = of_queries.T @ weights @ of_keys  # (text, attention_head, query_block, key_block)
        kept = self.best(mass, of_queries.T @ live.to(weights) @ of_keys > 0)
        return kept[..., query_block, :][..., key_block]

    def _blocks(self, n: int, like: Tensor, *, first_alone: bool) -> tuple[Tensor, Tensor]:
        """The block of each of n neighbours, (neighbour,), and the same as ones and zeros,
        (neighbour, block).
        """
        shift = self.block - 1 if first_alone else 0
        block = (torch.arange(n, device=like.device) + shift) // self.block
        # Computed, not read from the tensor: that would make a device wait.
        n_blocks = (n - 1 + shift) // self.block + 1
        return block, functional.one_hot(block, n_blocks).to(like)
