"""What a decoder keeps between steps, so that a step computes one piece and not the text so far.

Rows are hypotheses: those of the first text, then those of the next, the same number for each. The
target's keys and values belong to a row, the source's to a text, whose hypotheses share them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LayerCache:
    """Of one layer. source_key, source_value: (text, attention_head, source piece, head_width).

    key, value: of the target so far, (row, attention_head, target piece, head_width).
    """

    source_key: Tensor
    source_value: Tensor
    key: Tensor
    value: Tensor

    def add(self, key: Tensor, value: Tensor) -> LayerCache:
        """With one more piece of every row. (row, attention_head, head_width)"""
        return LayerCache(
            self.source_key,
            self.source_value,
            torch.cat([self.key, key.unsqueeze(2)], dim=2),
            torch.cat([self.value, value.unsqueeze(2)], dim=2),
        )


@dataclass(frozen=True)
class Cache:
    """Of all layers. live: which source pieces are real. (text, 1, 1, source piece)

    n_pieces: of the target so far.
    """

    layers: tuple[LayerCache, ...]
    live: Tensor
    n_pieces: int

    def choose_rows(self, rows: Tensor) -> Cache:
        """The target's part of other rows, or of the same in another order. rows: (row,)"""
        layers = []
        for one in self.layers:
            key, value = one.key.index_select(0, rows), one.value.index_select(0, rows)
            layers.append(LayerCache(one.source_key, one.source_value, key, value))
        return Cache(tuple(layers), self.live, self.n_pieces)

    def choose_texts(self, texts: Tensor) -> Cache:
        """The source's part of some of the texts; their rows must be chosen too. texts: (text,)"""
        layers = []
        for one in self.layers:
            source = one.source_key.index_select(0, texts), one.source_value.index_select(0, texts)
            layers.append(LayerCache(*source, one.key, one.value))
        return Cache(tuple(layers), self.live.index_select(0, texts), self.n_pieces)
