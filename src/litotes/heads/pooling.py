"""Means over texts of different lengths, without padding."""

from __future__ import annotations

from torch import Tensor

from litotes.text.layout import Layout


def mean_by_text(packed: Tensor, layout: Layout) -> Tensor:
    """The mean of each text's pieces. (piece, width) → (text, width)"""
    total = packed.new_zeros(layout.n_texts, packed.shape[-1]).index_add(0, layout.texts, packed)
    return total / layout.counts[:, None]
