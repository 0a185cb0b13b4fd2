"""Pieces to hidden states, and MPNet's bias by distance, in the file."""

from __future__ import annotations

import numpy as np
import torch

from litotes.encoders.embeddings import Embeddings, RelativeBias
from litotes.exporting.graph import Graph
from litotes.exporting.products import Products, as_array
from litotes.exporting.texts_graph import Texts


def write_embeddings(
    products: Products, embeddings: Embeddings, texts: Texts, pieces: str, segments: str
) -> str:
    """norm(piece + position + segment), and the projection of families that have one.

    (text, piece) → rows of width
    """
    graph, projection = products.graph, embeddings.projection
    positions = as_array(embeddings.position.weight)[embeddings.first_position :]
    hidden = products.look_up(embeddings.piece.weight, pieces)  # (text, piece, embedding_width)
    if embeddings.segment is not None:
        table = as_array(embeddings.segment.weight)
        if len(table) == 1:  # RoBERTa: the same for all, whatever the tokenizer says of a pair
            positions = positions + table
        else:
            known = graph.add("Min", segments, graph.ints(len(table) - 1))
            hidden = graph.plus(hidden, graph.gather(graph.constant(table), known))
    used = graph.first(graph.constant(positions), texts.n_pieces)
    normed = write_norm(graph, graph.plus(hidden, used), embeddings.norm)
    rows = products.to_rows(normed, positions.shape[1])
    return rows if projection is None else products.apply(rows, projection)


def write_norm(graph: Graph, rows: str, norm: torch.nn.LayerNorm) -> str:
    """A sum is normed by two operators on purpose: fused, as SkipLayerNormalization, they took
    three to four times as long (1.31, x86).
    """
    weight, offset = graph.constant(as_array(norm.weight)), graph.constant(as_array(norm.bias))
    return graph.add("LayerNormalization", rows, weight, offset, axis=-1, epsilon=norm.eps)


def write_relative_bias(graph: Graph, bias: RelativeBias, origin: str, *, max_pieces: int) -> str:
    """The bias of every pair, looked up by the distance at which its pieces stood.

    (text, piece) → (text, attention_head, query, key)
    """
    farthest = min(max_pieces - 1, bias.FARTHEST)  # beyond it all distances share a bucket
    whole = bias(torch.arange(farthest + 1)[None])[0]  # (attention_head, place, place)
    # from −farthest to farthest
    by_distance = torch.cat([whole[:, farthest], whole[:, 0, 1:]], dim=1)
    of_keys = graph.unsqueeze(origin, 1)
    of_queries = graph.unsqueeze(origin, 2)
    ahead = graph.minus(of_keys, of_queries)
    limits = graph.constant(np.int64(-farthest)), graph.constant(np.int64(farthest))
    near = graph.add("Clip", ahead, *limits)
    places = graph.plus(near, graph.ints(farthest))  # (text, query, key)
    # (attention_head, text, query, key)
    by_head = graph.gather(graph.constant(as_array(by_distance)), places, axis=1)
    return graph.transpose(by_head, 1, 0, 2, 3)
