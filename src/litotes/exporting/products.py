"""How rows are multiplied with a layer's weights in the file: in float32, with weights kept in 32
bits or in 16, or in int8 (int8.py).

All of an encoder's work except attention itself is such products, so this is the one place where
the kinds of file differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.exporting.graph import Graph
from litotes.exporting.texts_graph import Texts


class Products(ABC):
    """Writes products into `graph`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @abstractmethod
    def apply_parts(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        """X Wᵀ + b for several parts of the layer's outputs; the rows are prepared once for all."""

    @abstractmethod
    def look_up(self, table: Tensor, places: str) -> str:
        """Entries of a large table. (text, piece) → (text, piece, width)"""

    @abstractmethod
    def to_rows(self, values: str, width: int) -> str:
        """(text, piece, width) as rows: the shape in which products are computed."""

    @abstractmethod
    def to_texts(self, rows: str, width: int) -> str:
        """Rows as (text, piece, width)."""

    def apply(self, rows: str, layer: nn.Linear) -> str:
        """X Wᵀ + b."""
        (product,) = self.apply_parts(rows, layer, slice(None))
        return product


class Float32(Products):
    """As torch computes it.

    Rows are (text × piece, width): only then does ONNX add an offset without another pass.
    """

    def __init__(self, texts: Texts) -> None:
        super().__init__(texts.graph)
        self.texts = texts

    def apply_parts(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        graph, weight, offset = self.graph, as_array(layer.weight), offset_of(layer)
        products = []
        for part in outputs:
            kept = self.keep_weight(weight[part].T)
            products.append(graph.add("Gemm", rows, kept, graph.constant(offset[part])))
        return products

    def keep_weight(self, weight: NDArray[Any]) -> str:
        """The name of a weight matrix in float32."""
        return self.graph.constant(weight)

    def to_rows(self, values: str, width: int) -> str:
        return self.graph.reshape(values, -1, width)

    def to_texts(self, rows: str, width: int) -> str:
        return self.texts.reshape(rows, -1, width)

    def look_up(self, table: Tensor, places: str) -> str:
        return self.graph.gather(self.graph.constant(as_array(table)), places)


class Int16(Float32):
    """Weights kept in 16 bits, which halves the file; everything is computed in float32.

        w ≈ s_j · q,   s_j = max |w_j| / 32,767,   q a whole number of 16 bits

    with a step s_j for each output of a product and each entry of a table. A weight is off by at
    most half a step, one part in 65,534 of its output's largest; a float16 would be off by one in
    2,048. ONNX Runtime widens weights once, when it opens the file, and of a table the entries
    that it reads.
    """

    def keep_weight(self, weight: NDArray[Any]) -> str:
        numbers, steps = _to_int16(weight, axis=0)  # (input, output), (1, output)
        return self._widen(self.graph.constant(numbers), self.graph.constant(steps))

    def look_up(self, table: Tensor, places: str) -> str:
        numbers, steps = _to_int16(as_array(table), axis=1)  # (entry, width), (entry, 1)
        narrow = self.graph.gather(self.graph.constant(numbers), places)
        return self._widen(narrow, self.graph.gather(self.graph.constant(steps), places))

    def _widen(self, numbers: str, steps: str) -> str:
        return self.graph.times(self.graph.cast(numbers, np.float32), steps)


def _to_int16(weight: NDArray[Any], *, axis: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Whole numbers and their steps; the largest along `axis` is ±32,767."""
    largest = np.abs(weight).max(axis=axis, keepdims=True)
    steps = np.where(largest > 0, largest / 32767, 1).astype(np.float32)
    numbers = np.clip(np.rint(weight / steps), -32767, 32767)
    return numbers.astype(np.int16), steps


def as_array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy().astype(np.float32, copy=False)


def offset_of(layer: nn.Linear) -> NDArray[Any]:
    """The layer's offset; zeros where it has none. (output,)"""
    if layer.bias is None:
        return np.zeros(layer.out_features, dtype=np.float32)
    return as_array(layer.bias)
