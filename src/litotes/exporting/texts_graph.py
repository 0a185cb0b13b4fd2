"""Texts of equal length in one run of the file, side by side: (text, piece, width).

There is no padding: every text has as many pieces as every other, and because the length alone
decides how many of them stay, this still holds after any pruning. What a text gets must not depend
on the others, in int8 not even in the last bit. So sums over pieces are products with a row of
ones, one for every text: ONNX Runtime's own sums add in another order where a tensor has another
shape.
"""

from __future__ import annotations

import numpy as np

from litotes.exporting.graph import Graph


class Texts:
    """n: how many texts there are, n_pieces: how many pieces each of them came with, both (1,), by
    name.
    """

    def __init__(self, graph: Graph, pieces: str, *, most_pieces: int) -> None:
        """pieces: (text, piece)"""
        self.graph, self.most_pieces = graph, most_pieces
        self.n = graph.add("Shape", pieces, start=0, end=1)
        self.n_pieces = graph.add("Shape", pieces, start=1, end=2)
        self._shapes: dict[tuple[int, ...], str] = {}

    def keep(self, n: str) -> None:
        """From here on there are n texts, (1,) by name: the others have left."""
        self.n = n
        self._shapes.clear()

    def reshape(self, values: str, *shape: int) -> str:
        """(text × …, …) → (text, *shape), with -1 for what is left."""
        if shape not in self._shapes:
            self._shapes[shape] = self.graph.concat(self.n, self.graph.ints(*shape), axis=0)
        return self.graph.add("Reshape", values, self._shapes[shape])

    def first_piece(self, values: str) -> str:
        """(text, piece, width) → (text, 1, width)"""
        return self.graph.first(values, 1, axis=1)

    def gather(self, values: str, places: str) -> str:
        """Of every text its own places: (text, piece, …), (text, place) → (text, place, …)"""
        graph = self.graph
        indices = graph.unsqueeze(places, 2)
        return graph.add("GatherND", values, indices, batch_dims=1)

    def sum_pieces(self, values: str, n: str) -> str:
        """The sum over n pieces, n (1,) by name. (text, …, piece, width) → (text, …, width)"""
        graph = self.graph
        ones = graph.constant(np.ones(self.most_pieces, dtype=np.float32))
        return graph.matmul(graph.first(ones, n), values)
