"""Means over texts of different lengths, without padding."""

from __future__ import annotations

import torch
from torch import Tensor

from litotes.encoder.layout import Layout


def mean_by_text(packed: Tensor, layout: Layout) -> Tensor:
    """The mean of each text's pieces, 0 of a text without any. (piece, width) → (text, width)"""
    counts = layout.counts.clamp(min=1)[:, None]
    if packed.is_cuda:
        # adds in order, where index_add adds in a race: the same bytes every time
        total = torch.segment_reduce(
            packed.float(), "sum", offsets=layout.bounds, axis=0, unsafe=True, initial=0
        )
        return (total / counts).to(packed.dtype)
    total = packed.new_zeros(layout.n_texts, packed.shape[-1]).index_add(0, layout.texts, packed)
    return total / counts
