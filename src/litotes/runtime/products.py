"""How rows are multiplied with a layer's weights in the file: in float32, or in int8 (int8.py).

All of an encoder's work but attention itself is such products, so this is the one place where the two kinds of file differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.runtime.graph import Graph


class Products(ABC):
    """Writes products into `graph`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @abstractmethod
    def of(self, rows: str, *layers: nn.Linear) -> list[str]:
        """X Wᵀ + b of the same rows for every layer, (row, output) each: the rows are made ready once."""

    @abstractmethod
    def looked_up(self, table: Tensor, places: str) -> str:
        """Rows of a large table. (place, width)"""

    def one(self, rows: str, layer: nn.Linear) -> str:
        (product,) = self.of(rows, layer)
        return product


class Float32(Products):
    """As torch computes it."""

    def of(self, rows: str, *layers: nn.Linear) -> list[str]:
        return [self.graph.add("Gemm", rows, self.graph.constant(as_array(layer.weight).T), self._offset(layer)) for layer in layers]

    def looked_up(self, table: Tensor, places: str) -> str:
        return self.graph.pick(self.graph.constant(as_array(table)), places)

    def _offset(self, layer: nn.Linear) -> str:
        return self.graph.constant(as_array(layer.bias))


def as_array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy().astype(np.float32, copy=False)


def part_of(layer: nn.Linear, start: int, end: int) -> nn.Linear:
    """The layer that gives outputs start to end alone."""
    part = nn.Linear(layer.in_features, end - start, device="meta")
    part.weight = nn.Parameter(layer.weight.detach()[start:end], requires_grad=False)
    part.bias = nn.Parameter(layer.bias.detach()[start:end], requires_grad=False)
    return part
