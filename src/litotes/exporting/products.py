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


class Half(Float32):
    """Weights kept in 16 bits, which halves the file; everything is computed in float32.

    ONNX Runtime widens weights once, when it opens the file, and of a table the entries it reads.
    A float16 has 11 bits: each weight is off by at most one part in 2,048. What does not fit
    (beyond 65,504) stays in 32.
    """

    def keep_weight(self, weight: NDArray[Any]) -> str:
        if not _fits_half(weight):
            return super().keep_weight(weight)
        return self.graph.cast(self.graph.constant(weight.astype(np.float16)), np.float32)

    def look_up(self, table: Tensor, places: str) -> str:
        entries = as_array(table)
        if not _fits_half(entries):
            return super().look_up(table, places)
        narrow = self.graph.gather(self.graph.constant(entries.astype(np.float16)), places)
        return self.graph.cast(narrow, np.float32)


def _fits_half(weight: NDArray[Any]) -> bool:
    return float(np.abs(weight).max(initial=0)) <= float(np.finfo(np.float16).max)


def as_array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy().astype(np.float32, copy=False)


def offset_of(layer: nn.Linear) -> NDArray[Any]:
    """The layer's offset; zeros where it has none. (output,)"""
    if layer.bias is None:
        return np.zeros(layer.out_features, dtype=np.float32)
    return as_array(layer.bias)
