"""Prunings that go by the weight pieces received, summed over layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from litotes.encoder.attention.pruning import AttentionOutput, Pruning
from litotes.encoder.attention.survivors import Survivors


class AttentionSum(Pruning):
    """importance_l = (importance_{l−1} + received_l) × factor_l. Kernels on a GPU know this sum.

    by_value: every weight counts by the length of the value it moves (Kobayashi et al. 2020, arXiv
    2004.10102).
    """

    def __init__(self, *sizes: int, by_value: bool, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.by_value = by_value

    def importance_factor(self, layer: int, hidden: Tensor) -> Tensor | None:
        """What multiplies importance in this layer, (piece,); None: nothing."""
        return None

    def importance(
        self, layer: int, hidden: Tensor, survivors: Survivors, attention: AttentionOutput
    ) -> Tensor:
        total = survivors.importance + received_weight(attention, by_value=self.by_value)
        factor = self.importance_factor(layer, hidden)
        return total if factor is None else total * factor


def received_weight(attention: AttentionOutput, *, by_value: bool) -> Tensor:
    """The weight each piece got in one layer, or the lengths of the values it moved. (piece,)"""
    weights = attention.received.detach()  # (piece, attention_head)
    if by_value:
        weights = weights * attention.value.detach().float().norm(dim=-1)
    return weights.sum(-1)
