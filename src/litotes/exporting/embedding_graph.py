"""Pieces to hidden states, in the file."""

from __future__ import annotations

from torch import nn

from litotes.encoder.encoder import Embeddings
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
    hidden = products.look_up(embeddings.piece.weight, pieces)  # (text, piece, embedding_width)
    positions = None
    if embeddings.position is not None:
        positions = as_array(embeddings.position.weight)[embeddings.first_position :]
    if embeddings.segment is not None:
        table = as_array(embeddings.segment.weight)
        # RoBERTa: the same for all, whatever the tokenizer says of a pair
        if len(table) == 1 and positions is not None:
            positions = positions + table
        else:
            known = graph.add("Min", segments, graph.ints(len(table) - 1))
            hidden = graph.plus(hidden, graph.gather(graph.constant(table), known))
    if positions is not None:
        used = graph.first(graph.constant(positions), texts.n_pieces)
        hidden = graph.plus(hidden, used)
    normed = write_norm(graph, hidden, embeddings.norm)
    rows = products.to_rows(normed, embeddings.piece.embedding_dim)
    return rows if projection is None else products.apply(rows, projection)


def write_norm(graph: Graph, rows: str, norm: nn.LayerNorm) -> str:
    """A sum is normed by two operators on purpose: fused, as SkipLayerNormalization, they took
    three to four times as long (1.31, x86).
    """
    scale = [graph.constant(as_array(norm.weight))]
    if norm.bias is not None:
        scale.append(graph.constant(as_array(norm.bias)))
    return graph.add("LayerNormalization", rows, *scale, axis=-1, epsilon=norm.eps)
