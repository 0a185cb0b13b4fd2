"""How rows are multiplied with a layer's weights in the file: in float32, or in int8 (int8.py).

All of an encoder's work but attention itself is such products, so this is the one place where the
two kinds of file differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.export.graph import Graph
from litotes.export.texts_graph import Texts


class Products(ABC):
    """Writes products into `graph`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @abstractmethod
    def of(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        """X Wᵀ + b, for some of the layer's outputs at a time: the rows are made ready once for all
        of them.
        """

    @abstractmethod
    def looked_up(self, table: Tensor, places: str) -> str:
        """Entries of a large table. (text, piece) → (text, piece, width)"""

    @abstractmethod
    def joined(self, values: str, width: int) -> str:
        """(text, piece, width) as rows: the shape in which `of` takes and gives them."""

    @abstractmethod
    def apart(self, rows: str, width: int) -> str:
        """Rows as (text, piece, width)."""

    def one(self, rows: str, layer: nn.Linear) -> str:
        """All outputs."""
        (product,) = self.of(rows, layer, slice(None))
        return product


class Float32(Products):
    """As torch computes it.

    Rows are (text × piece, width): only so does ONNX add an offset without another pass.
    """

    def __init__(self, texts: Texts) -> None:
        super().__init__(texts.graph)
        self.texts = texts

    def of(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        graph, weight, offset = self.graph, as_array(layer.weight), as_array(layer.bias)
        return [
            graph.add("Gemm", rows, graph.constant(weight[some].T), graph.constant(offset[some]))
            for some in outputs
        ]

    def joined(self, values: str, width: int) -> str:
        return self.graph.reshape(values, -1, width)

    def apart(self, rows: str, width: int) -> str:
        return self.texts.shaped(rows, -1, width)

    def looked_up(self, table: Tensor, places: str) -> str:
        return self.graph.pick(self.graph.constant(as_array(table)), places)


def as_array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy().astype(np.float32, copy=False)
