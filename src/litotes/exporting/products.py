"""How rows are multiplied with a layer's weights in the file: in float32, with weights kept in 32
bits or in 16, or in int8.

All of an encoder's work except attention itself is such products, so this is the one place where
the kinds of file differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.exporting.graph import Graph, Symbol
from litotes.exporting.int8 import (
    HIGHEST_IN_TABLE,
    Array,
    Inputs,
    as_array,
    quantise,
    round_weights,
)


class Products(ABC):
    """Writes products into `graph`.

    flat: whether rows are (text × piece, width) or stay (text, piece, width).
    """

    flat: ClassVar[bool]

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @abstractmethod
    def apply(self, rows: Symbol, layer: nn.Linear, *outputs: slice) -> list[Symbol]:
        """X Wᵀ + b for some parts of the layer's outputs; the rows are prepared once for all."""

    @abstractmethod
    def look_up(self, table: Tensor, places: Symbol) -> Symbol:
        """Entries of a large table. (text, piece) → (text, piece, width)"""


class Float32(Products):
    """As torch computes it; only of flat rows does ONNX add an offset without another pass."""

    flat = True

    def apply(self, rows: Symbol, layer: nn.Linear, *outputs: slice) -> list[Symbol]:
        weight, offset = as_array(layer.weight), _offset_of(layer)
        return [
            self.graph.Gemm(rows, self.keep_weight(weight[part].T), offset[part])
            for part in outputs
        ]

    def keep_weight(self, weight: Array) -> Symbol:
        """A weight matrix in float32. (input, output)"""
        return self.graph.constant(weight)

    def look_up(self, table: Tensor, places: Symbol) -> Symbol:
        return self.graph.Gather(as_array(table), places)


class Int16(Float32):
    """Weights kept in 16 bits, which halves the file; everything is computed in float32.

        w ≈ s_j · q,   s_j = max |w_j| / 32,767,   q a whole number of 16 bits

    with a step s_j for each output of a product and each entry of a table. A weight is off by at
    most half a step, one part in 65,534 of its output's largest; a float16 would be off by one in
    2,048. ONNX Runtime widens weights once, when it opens the file, and of a table the entries
    that it reads.
    """

    def keep_weight(self, weight: Array) -> Symbol:
        numbers, steps = _to_int16(weight, axis=0)  # (input, output), (1, output)
        return self.graph.cast(self.graph.constant(numbers), np.float32) * steps

    def look_up(self, table: Tensor, places: Symbol) -> Symbol:
        numbers, steps = _to_int16(as_array(table), axis=1)  # (entry, width), (entry, 1)
        narrow = self.graph.Gather(numbers, places)
        return self.graph.cast(narrow, np.float32) * self.graph.Gather(steps, places)


class Int8(Products):
    """Every layer's weights in int8 with a scale per output; tables in int8 with a scale per row
    (int8.py). known: the inputs of every layer.
    """

    flat = False

    def __init__(self, graph: Graph, known: Mapping[nn.Linear, Inputs]) -> None:
        super().__init__(graph)
        self.known = known

    def apply(self, rows: Symbol, layer: nn.Linear, *outputs: slice) -> list[Symbol]:
        weight, offset, inputs = as_array(layer.weight), _offset_of(layer), self.known[layer]
        factors = inputs.factors()  # (input,)
        if (factors > 1).any():
            rows, weight, inputs = rows * (1 / factors), weight * factors, inputs.divide(factors)
        scale, zero = inputs.steps()
        quantised = self.graph.QuantizeLinear(rows, scale, zero)
        products = []
        for part in outputs:
            # (output, input), (output, 1)
            steps, scales = round_weights(weight[part], inputs.covariance)
            corrected = offset[part] + (weight[part] - steps * scales) @ inputs.mean
            rest = (scale, scales[:, 0], zero, "", corrected)
            products.append(self.graph.MatMulIntegerToFloat(quantised, steps.T, *rest))
        return products

    def look_up(self, table: Tensor, places: Symbol) -> Symbol:
        rows = as_array(table)
        # (entry, width), (entry, 1)
        steps, scales = quantise(rows, np.abs(rows).max(1, keepdims=True), HIGHEST_IN_TABLE)
        narrow = self.graph.Gather(steps, places)
        return self.graph.cast(narrow, np.float32) * self.graph.Gather(scales, places)


def _to_int16(weight: Array, *, axis: int) -> tuple[NDArray[np.int16], Array]:
    """Whole numbers and their steps; the largest along `axis` is ±32,767."""
    largest = np.abs(weight).max(axis=axis, keepdims=True)
    steps = np.where(largest > 0, largest / 32767, 1).astype(np.float32)
    return np.clip(np.rint(weight / steps), -32767, 32767).astype(np.int16), steps


def _offset_of(layer: nn.Linear) -> Array:
    """The layer's offset; zeros where it has none. (output,)"""
    if layer.bias is None:
        return np.zeros(layer.out_features, dtype=np.float32)
    return as_array(layer.bias)
