"""block_top_k: neighbouring queries keep whole blocks of neighbouring keys.

Crisp Attention, 2025, arXiv 2508.06016.

What is left out is structured, so that a kernel may leave it out: a block of queries reads some
blocks of keys and none of the rest.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from litotes.attention.softmax import softmax_over
from litotes.attention.top_k import SelectiveSoftmax
from litotes.core.errors import UserError


class BlockTopK(SelectiveSoftmax):
    """The best blocks of keys for each block of queries: softmax over the ⌈(1 − sparsity) × live
    blocks⌉ that softmax gives most weight.

    block: how many neighbouring keys, and queries, make a block. A text's first piece is a block of
    queries by itself: a classification head may ask for its row alone, and it has to be the same
    row.

    The live keys are a text's: the same for all its queries.
    """

    def __init__(
        self, n_attention_heads: int, *, sparsity: float = 0.5, block: int = 4, ramp: float = 0.0
    ) -> None:
        super().__init__(n_attention_heads, sparsity=sparsity, ramp=ramp)
        if block < 1:
            raise UserError(
                f"A block of keys cannot have {block} of them. Give a block of 1 or more."
            )
        self.block = block

    def forward(
        self, affinity: Tensor, live: Tensor | None = None, heads: Tensor | None = None
    ) -> Tensor:
        everywhere = (
            torch.ones_like(affinity, dtype=torch.bool)
            if live is None
            else live.expand_as(affinity)
        )
        with torch.no_grad():
            chosen = self._chosen(affinity, everywhere)
        return softmax_over(affinity, chosen & everywhere)

    def _chosen(self, affinity: Tensor, live: Tensor) -> Tensor:
        """Which keys lie in a block that their query's block keeps.

        (text, attention_head, query, key)
        """
        n_queries, n_keys = affinity.shape[-2:]
        weights = softmax_over(affinity.float(), live)
        # a text that looks at itself: what follows its end is padding and has no say
        if n_queries == n_keys:
            weights = weights * live.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        # the first piece is block 0
        query_block = (
            torch.arange(n_queries, device=affinity.device) + self.block - 1
        ) // self.block
        key_block = torch.arange(n_keys, device=affinity.device) // self.block
        # The numbers of blocks are said, for to look them up in the tensor would make a device
        # wait.
        # (query_block, query)
        of_queries = (
            functional.one_hot(query_block, (n_queries + self.block - 2) // self.block + 1)
            .to(weights)
            .T
        )
        # (key, key_block)
        of_keys = functional.one_hot(key_block, -(-n_keys // self.block)).to(weights)
        mass = of_queries @ weights @ of_keys  # (text, attention_head, query_block, key_block)
        kept = self.best(mass, of_queries @ live.to(weights) @ of_keys > 0)
        return kept[..., query_block, :][..., key_block]
