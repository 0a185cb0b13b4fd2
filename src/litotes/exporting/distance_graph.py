"""What attention knows of where pieces stand, in the file: MPNet's bias by distance, DeBERTa's
disentangled attention, rotary positions and windows.

Everything goes by `origin`, the places that pieces had in their text, (text, piece) or (1, piece).
"""

from __future__ import annotations

import numpy as np
import torch

from litotes.encoder.encoder import Attention, DistanceEmbeddings, DistanceTerms, RelativeBias
from litotes.encoder.torch_operations import rotary_angles
from litotes.exporting.block_graph import Projections, split_heads
from litotes.exporting.graph import Graph
from litotes.exporting.products import as_array
from litotes.exporting.texts_graph import Texts

_FAR = np.float32(-1e30)
"""Added to the affinity of a key outside a window: no weight is left of it."""


def write_relative_bias(graph: Graph, bias: RelativeBias, origin: str, *, max_pieces: int) -> str:
    """The bias of every pair, looked up by the distance at which its pieces stood.

    (text, piece) → (text, attention_head, query, key)
    """
    farthest = min(max_pieces - 1, bias.FARTHEST)  # beyond it all distances share a bucket
    whole = bias(torch.arange(farthest + 1)[None])[0]  # (attention_head, place, place)
    # from −farthest to farthest
    by_distance = torch.cat([whole[:, farthest], whole[:, 0, 1:]], dim=1)
    limits = graph.constant(np.int64(-farthest)), graph.constant(np.int64(farthest))
    near = graph.add("Clip", _write_ahead(graph, origin), *limits)
    places = graph.plus(near, graph.ints(farthest))  # (text, query, key)
    # (attention_head, text, query, key)
    by_head = graph.gather(graph.constant(as_array(by_distance)), places, axis=1)
    return graph.transpose(by_head, 1, 0, 2, 3)


def _write_ahead(graph: Graph, origin: str) -> str:
    """How far each key stands ahead of each query. (text, piece) → (text, query, key)"""
    return graph.minus(graph.unsqueeze(origin, 1), graph.unsqueeze(origin, 2))


def write_window(graph: Graph, origin: str, *, window: int) -> str:
    """0 for keys within the window of a query, and so far behind for the others that they get no
    weight. (text, piece) → (text, 1, query, key)
    """
    apart = graph.add("Abs", _write_ahead(graph, origin))
    is_far = graph.add("Greater", apart, graph.ints(window // 2))
    behind = graph.add("Where", is_far, graph.constant(_FAR), graph.number(0))
    return graph.unsqueeze(behind, 1)


def write_turned(
    texts: Texts, attention: Attention, values: str, origin: str, *, base: float
) -> str:
    """Queries or keys turned by where they stand (encoders/rotary.py).

    (text, piece, attention_head × head_width) → the same
    """
    graph, head_width = texts.graph, attention.inner // attention.n_heads
    # (place, 1, head_width / 2)
    angles = rotary_angles(torch.arange(texts.most_pieces), base, head_width)
    tables = [graph.constant(as_array(table[:, 0])) for table in angles]
    places = graph.add("Expand", origin, graph.concat(texts.n, graph.ints(1), axis=0))
    return graph.add("RotaryEmbedding", values, *tables, places, num_heads=attention.n_heads)


class DistanceGraph:
    """Writes disentangled attention (encoders/disentangled.py)."""

    def __init__(self, texts: Texts, distances: DistanceEmbeddings) -> None:
        self.texts, self.graph, self.distances = texts, texts.graph, distances
        reached = [distances.reached(length) for length in range(1, texts.most_pieces + 1)]
        # the part of the table that a text can ask for, by its length, (1,) both
        self.start = self._look_up([0, *(part.start for part in reached)])
        self.stop = self._look_up([0, *(part.stop for part in reached)])

    def _look_up(self, numbers: list[int]) -> str:
        return self.graph.gather(self.graph.ints(*numbers), self.texts.n_pieces)

    def write_places(self, origin: str) -> str:
        """Which of the distances a text can ask for each of its pairs has.

        (text, piece) → (text, query, key)
        """
        graph, farthest = self.graph, self.texts.most_pieces - 1
        span = self.distances.span
        row = self.distances.bucket(torch.arange(self.texts.most_pieces)[None])[0]
        # of keys from `farthest` behind to `farthest` ahead
        buckets = torch.cat([row[farthest], row[0, 1:]])
        in_table = (span + buckets).clamp(max=2 * span - 1).tolist()
        places = graph.plus(_write_ahead(graph, origin), graph.ints(farthest))
        return graph.minus(graph.gather(graph.ints(*in_table), places), self.start)

    def write_bias(self, attention: Attention, projections: Projections, places: str) -> str:
        """c2p + p2c. places: (text, query, key) → (text, attention_head, query, key)"""
        graph, parts = self.graph, []
        terms = self._terms(attention)
        if terms.keys is not None and attention.disentangled is not None:
            keys = terms.keys * attention.disentangled.share  # here queries are as they are
            query = split_heads(graph, attention, projections.query)
            parts.append(self._compare(query, keys, graph.unsqueeze(places, 1)))
        if terms.queries is not None:
            key = split_heads(graph, attention, projections.key)
            by_key = graph.unsqueeze(graph.transpose(places, 0, 2, 1), 1)
            compared = self._compare(key, terms.queries, by_key)
            parts.append(graph.transpose(compared, 0, 1, 3, 2))
        return parts[0] if len(parts) == 1 else graph.plus(*parts)

    def _terms(self, attention: Attention) -> DistanceTerms:
        """Of all distances: where the weights are known, so are these."""
        assert attention.disentangled is not None
        places = torch.arange(self.texts.most_pieces, device=self.distances.table.weight.device)[
            None
        ]
        whole = self.distances([places], [self.texts.most_pieces])
        (terms,) = attention.disentangled(*whole, attention.qkv)
        return terms

    def _compare(self, rows: str, projected: torch.Tensor, places: str) -> str:
        """rows: (text, attention_head, piece, head_width), projected: (attention_head, distance,
        head_width), places: (text, 1, piece, other) → (text, attention_head, piece, other)
        """
        graph, first = self.graph, self.distances.reached(self.texts.most_pieces).start
        offset = graph.ints(first)
        start, stop = graph.minus(self.start, offset), graph.minus(self.stop, offset)
        all_distances = graph.constant(as_array(projected.transpose(1, 2)).copy())
        products = graph.matmul(rows, graph.slice(all_distances, start, stop, axis=2))
        shape = graph.concat(self.texts.n, graph.ints(len(projected), 1, 1), axis=0)
        return graph.add("GatherElements", products, graph.add("Expand", places, shape), axis=-1)
