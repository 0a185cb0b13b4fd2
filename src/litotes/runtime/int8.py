"""Products in int8: weights quantised when the file is written, activations while it runs.

    x ≈ s (q − z)     q in 0…255, one s and z for all rows of a product, from their smallest and largest number
    W ≈ t p           p in −63…63, one t for every output

    x Wᵀ ≈ s t Σ (q − z) p

Why 63 and not 127: x86 processors without VNNI add two products u8 × s8 in 16 bits (vpmaddubsw), and 2 · 255 · 127 does not fit; the sum
is cut off in silence. 2 · 255 · 63 = 32,130 fits. A file travels between machines, so it is written such that all of them get it right;
one bit of the weights is the price (docs: quantisation with reduced range, ONNX Runtime).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.runtime.products import Products, as_array

HIGHEST_WEIGHT = 63
HIGHEST_IN_TABLE = 127
"""Tables are looked up, not multiplied: they may use all of int8."""


class Int8(Products):
    """Every layer's weights in int8 with a scale per output; tables in int8 with a scale per row."""

    def of(self, rows: str, *layers: nn.Linear) -> list[str]:
        graph = self.graph
        quantised, scale, zero = graph.add_several("DynamicQuantizeLinear", rows, n_outputs=3)
        products = []
        for layer in layers:
            weights, scales = quantise(as_array(layer.weight), HIGHEST_WEIGHT)  # (output, input), (output, 1)
            described = (graph.constant(weights.T), scale, graph.constant(scales[:, 0]), zero, "", graph.constant(as_array(layer.bias)))
            products.append(graph.add("MatMulIntegerToFloat", quantised, *described))
        return products

    def looked_up(self, table: Tensor, places: str) -> str:
        graph = self.graph
        entries, scales = quantise(as_array(table), HIGHEST_IN_TABLE)  # (entry, width), (entry, 1)
        whole = graph.cast(graph.pick(graph.constant(entries), places), np.float32)
        return graph.add("Mul", whole, graph.pick(graph.constant(scales), places))


def quantise(rows: NDArray[Any], highest: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Each row as whole numbers −highest…highest times a scale of its own. (row, width) → the same shape, and (row, 1)"""
    largest = np.abs(rows).max(1, keepdims=True)
    scales = np.where(largest > 0, largest, 1) / np.float32(highest)
    return np.rint(rows / scales).astype(np.int8), scales.astype(np.float32)
