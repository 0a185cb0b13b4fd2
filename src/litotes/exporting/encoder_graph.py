"""The walk of an encoder in the file, for texts of equal length: embeddings, blocks, and the pieces
left for the heads to read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litotes.attention.softmax import Softmax
from litotes.encoders.encoder import Block, Encoder
from litotes.exporting.block_graph import (
    Projections,
    write_attention,
    write_attention_output,
    write_attention_with_weights,
    write_feed_forward,
    write_projections,
)
from litotes.exporting.embedding_graph import write_embeddings, write_relative_bias
from litotes.exporting.products import Products
from litotes.exporting.pruning_graph import PruningGraph
from litotes.exporting.removal_graph import GraphState
from litotes.exporting.texts_graph import Texts
from litotes.runtime.onnx.file_format import PIECES, SEGMENTS


def write_encoder(products: Products, encoder: Encoder, texts: Texts, *, firsts_only: bool) -> str:
    """Hidden states of every piece the heads read, as rows; only of the first if they read nothing
    else.
    """
    return _Walk(products, encoder, texts, firsts_only=firsts_only).write()


class _Walk:
    """What all layers of one walk share."""

    def __init__(
        self, products: Products, encoder: Encoder, texts: Texts, *, firsts_only: bool
    ) -> None:
        self.products, self.graph, self.texts = products, products.graph, texts
        self.encoder, self.spec, self.firsts_only = encoder, encoder.spec, firsts_only
        plan = encoder.pruning.plan()
        self.plan = plan.for_firsts_only() if firsts_only else plan
        self.pruning = PruningGraph(products, texts, encoder.pruning, self.plan, encoder.spec)
        self.biases: dict[str, str] = {}

    def write(self) -> str:
        with self.graph.part("embeddings"):
            embeddings = self.encoder.embeddings
            hidden = write_embeddings(self.products, embeddings, self.texts, PIECES, SEGMENTS)
            state = GraphState(hidden, self._places(), self.texts.n_pieces)
        for layer, number in enumerate(self.spec.walk):
            block = self.encoder.blocks[number]
            assert isinstance(block, Block)
            if self.firsts_only and layer == len(self.spec.walk) - 1:
                return self._write_firsts(layer, block, state)
            state = self._write_layer(layer, block, state)
        return self.pruning.restore(state) if state.removed else state.hidden

    def _write_layer(self, layer: int, block: Block, state: GraphState) -> GraphState:
        """Rows of all pieces → rows of those that stay"""
        graph, attention = self.graph, block.attention
        prunes = self.plan.needs_importance(layer, self.spec.n_attention_heads)
        with graph.part(f"layer.{layer}.projections"):
            projections = write_projections(self.products, attention, state.hidden)
        if not prunes:
            with graph.part(f"layer.{layer}.attention"):
                mixed = self._write_mixed(block, state, projections, self._bias(block, state))
            return self._complete(layer, block, state, mixed)
        with graph.part(f"layer.{layer}.attention"):
            bias = self._bias(block, state)
            observed = write_attention_with_weights(
                graph, attention, projections, bias=bias, heads=state.heads
            )
        with graph.part(f"layer.{layer}.selection"):
            state, mixed = self.pruning.prune(layer, state, observed)
        return self._complete(layer, block, state, mixed)

    def _write_firsts(self, layer: int, block: Block, state: GraphState) -> str:
        """The last layer for the first piece alone: exact, because the others are not read.

        Rows, one a text
        """
        graph = self.graph
        with graph.part(f"layer.{layer}.projections"):
            first = self._first_rows(state.hidden)
            projections = write_projections(
                self.products, block.attention, state.hidden, first=first
            )
        with graph.part(f"layer.{layer}.attention"):
            bias = self._bias(block, state)
            if bias is not None:
                bias = graph.first(bias, 1, axis=2)
            mixed = self._write_mixed(block, state, projections, bias)
        return self._complete(layer, block, replace(state, hidden=first), mixed).hidden

    def _first_rows(self, hidden: str) -> str:
        width = self.spec.width
        first = self.texts.first_piece(self.products.to_texts(hidden, width))
        return self.products.to_rows(first, width)

    def _write_mixed(
        self, block: Block, state: GraphState, projections: Projections, bias: str | None
    ) -> str:
        """What each query gathers, where no pruning wants to see the weights."""
        graph, attention = self.graph, block.attention
        # ONNX's own operator for attention says it all
        if state.heads is None and type(attention.weighting) is Softmax:
            return write_attention(graph, attention, projections, bias)
        return write_attention_with_weights(
            graph, attention, projections, bias=bias, heads=state.heads
        ).mixed

    def _complete(self, layer: int, block: Block, state: GraphState, mixed: str) -> GraphState:
        """What follows attention: its output projection and the feed-forward part."""
        with self.graph.part(f"layer.{layer}.projections"):
            hidden = write_attention_output(self.products, block, state.hidden, mixed)
        with self.graph.part(f"layer.{layer}.feed_forward"):
            hidden = write_feed_forward(self.products, block, self.spec.activation, hidden)
        return replace(state, hidden=hidden)

    def _places(self) -> str | None:
        """0, 1, 2, …: where each piece stands, if it is needed.

        (text, piece); (1, piece) where no piece ever leaves
        """
        if self.encoder.relative_bias is None and not self.encoder.pruning.restore:
            return None
        graph = self.graph
        places = graph.constant(np.arange(self.spec.max_pieces)[None])
        here = graph.first(places, self.texts.n_pieces, axis=1)
        if min(self.plan.pieces) == 1:
            return here
        return graph.add("Expand", here, graph.concat(self.texts.n, graph.ints(1), axis=0))

    def _bias(self, block: Block, state: GraphState) -> str | None:
        """MPNet's, by where the pieces stood; written once for layers between which none left.

        (text, attention_head, query, key)
        """
        relative, graph = self.encoder.relative_bias, self.graph
        if relative is None:
            return None
        assert state.origin is not None
        if state.origin not in self.biases:
            self.biases[state.origin] = write_relative_bias(
                graph, relative, state.origin, max_pieces=self.spec.max_pieces
            )
        bias = self.biases[state.origin]
        if block.attention.has_all_heads:
            return bias
        return graph.gather(bias, graph.ints(*block.attention.heads), axis=1)
