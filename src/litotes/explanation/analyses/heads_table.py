"""Values of the attention heads a text still used, laid out for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from litotes.encoder.attention.observer import TextAttention


def by_head(
    views: Sequence[TextAttention], values: Sequence[Tensor], n_attention_heads: int
) -> Tensor:
    """(layer, attention_head), NaN for attention heads that are gone. values: per layer one number
    for each head shown.
    """
    whole = torch.full((len(views), n_attention_heads), math.nan, dtype=torch.float64)
    for row, view, shown in zip(whole, views, values, strict=True):
        row[list(view.heads)] = shown.double().cpu()
    return whole
