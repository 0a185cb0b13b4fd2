"""How rows are multiplied with a layer's weights in the file: in float32, or in int8 (int8.py).

All of an encoder's work except attention itself is such products, so this is the one place where
the two kinds of file differ.
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
            constants = graph.constant(weight[part].T), graph.constant(offset[part])
            products.append(graph.add("Gemm", rows, *constants))
        return products

    def to_rows(self, values: str, width: int) -> str:
        return self.graph.reshape(values, -1, width)

    def to_texts(self, rows: str, width: int) -> str:
        return self.texts.reshape(rows, -1, width)

    def look_up(self, table: Tensor, places: str) -> str:
        return self.graph.gather(self.graph.constant(as_array(table)), places)


def as_array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy().astype(np.float32, copy=False)


def offset_of(layer: nn.Linear) -> NDArray[Any]:
    """The layer's offset; zeros where it has none. (output,)"""
    if layer.bias is None:
        return np.zeros(layer.out_features, dtype=np.float32)
    return as_array(layer.bias)
