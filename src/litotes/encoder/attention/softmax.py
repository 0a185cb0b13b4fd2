"""softmax: every live key gets some weight. Vaswani et al. 2017, arXiv 1706.03762, §3.2.1."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from litotes.encoder.attention.rule import RowRule
from litotes.encoder.attention.weighting import Weighting
from litotes.encoder.operations import Operations, Value
from litotes.encoder.torch_operations import TORCH


class Softmax(Weighting):
    """Dense weights: w_k = exp(a_k) / Σ_j exp(a_j)."""

    def forward(
        self,
        affinity: Value,
        live: Value | None = None,
        heads: Value | None = None,
        *,
        ops: Operations = TORCH,
    ) -> Value:
        return ops.softmax(affinity, live)

    def row_rule(self, device: torch.device) -> RowRule:
        return RowRule("softmax")

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        live: Tensor | None = None,
        bias: Tensor | None = None,
        heads: Tensor | None = None,
        dropout: float = 0.0,
    ) -> Tensor:
        """The same by torch's fused kernel, which never writes the weights to memory.

        On a CPU that kernel has no dropout: torch falls back to separate operations there, with
        more passes over the weights than the definition needs.
        """
        if dropout and query.device.type == "cpu":
            return super().attend(
                query, key, value, live=live, bias=bias, heads=heads, dropout=dropout
            )
        if bias is not None and live is not None:
            bias = bias.masked_fill(~live, torch.finfo(bias.dtype).min)
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=live if bias is None else bias, dropout_p=dropout
        )
