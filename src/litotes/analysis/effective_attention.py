"""Effective attention: the part of the weights that reaches the output. Brunner et al. 2020, arXiv 1908.04211."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class EffectiveAttention:
    """maps: (attention_head, query, key). n_null: the dimension of the left null space of V, (attention_head,)."""

    maps: Tensor
    n_null: Tensor


def effective_attention(weights: Tensor, value: Tensor, mixed: Tensor) -> EffectiveAttention:
    """A⊥ = O V⁺ of one text's live pieces. weights: (attention_head, query, key), value: (attention_head, key, head_width)."""
    exact = value.double()
    maps = (mixed.double() @ torch.linalg.pinv(exact)).to(weights.dtype)
    return EffectiveAttention(maps, value.shape[1] - torch.linalg.matrix_rank(exact))
