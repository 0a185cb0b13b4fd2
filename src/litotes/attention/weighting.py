"""The first seam of attention: a weighting turns affinities into weights.

    weights = simplex(affinity),   affinity[q, k] = query_q · key_k / √d + bias[q, k]

A weighting is a module of its own in every block, so it may carry parameters (one number per attention head, say).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn
from torch.nn import functional


class Weighting(nn.Module, ABC):
    """Non-negative weights over the live keys that sum to 1.

    `forward` is the definition and all that a new weighting has to give. `attend` may be overridden where a fused
    kernel computes the same thing.
    """

    def __init__(self, n_attention_heads: int) -> None:
        super().__init__()
        self.n_attention_heads = n_attention_heads

    @abstractmethod
    def forward(self, affinity: Tensor, live: Tensor | None = None) -> Tensor:
        """Weights of the shape of `affinity` (text, attention_head, query, key); keys that are not live get exactly 0.

        live: boolean, broadcastable to `affinity`; None when every key is live.
        """

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, live: Tensor | None = None, bias: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """The weighted mean of the values, for rows of texts (text, attention_head, piece, head_width)."""
        affinity = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)  # (text, attention_head, query, key)
        if bias is not None:
            affinity = affinity + bias
        weights = self(affinity, live)
        if dropout:
            weights = functional.dropout(weights, dropout)
        return weights @ value  # (text, attention_head, query, head_width)
