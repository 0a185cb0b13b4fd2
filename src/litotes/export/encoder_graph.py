"""The walk of an encoder in the file, for texts of equal length: embeddings, blocks, and who is
left for the heads to read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litotes.attention.softmax import Softmax
from litotes.encoders.encoder import Block, Encoder
from litotes.export.block_graph import Asked, attend, fed_forward, observe, with_gathered
from litotes.export.embedding_graph import bias_by_distance, embedded
from litotes.export.products import Products
from litotes.export.pruning_graph import PruningGraph, There
from litotes.export.texts_graph import Texts
from litotes.runtime.onnx.file_format import PIECES, SEGMENTS


def encoded(products: Products, encoder: Encoder, texts: Texts, *, firsts_only: bool) -> str:
    """Hidden states of every piece the heads read, as rows; of the first alone where they read
    nothing else.
    """
    return _Walk(products, encoder, texts, firsts_only=firsts_only).hidden()


class _Walk:
    """What all layers of one walk know."""

    def __init__(
        self, products: Products, encoder: Encoder, texts: Texts, *, firsts_only: bool
    ) -> None:
        self.products, self.graph, self.encoder, self.texts, self.firsts_only = (
            products,
            products.graph,
            encoder,
            texts,
            firsts_only,
        )
        plan = encoder.pruning.plan()
        self.plan = plan.for_firsts_only() if firsts_only else plan
        self.pruning = PruningGraph(products, texts, encoder.pruning, self.plan, encoder.spec)
        self.biases: dict[str, str] = {}

    def hidden(self) -> str:
        spec = self.encoder.spec
        with self.graph.part("embeddings"):
            hidden = embedded(self.products, self.encoder.embeddings, self.texts, PIECES, SEGMENTS)
            there = There(hidden, self._places(), self.texts.n_pieces)
        for layer, number in enumerate(spec.walk):
            block = self.encoder.blocks[number]
            assert isinstance(block, Block)
            if self.firsts_only and layer == len(spec.walk) - 1:
                return self._first(layer, block, there)
            there = self._layer(layer, block, there)
        return self.pruning.restored(there) if there.left else there.hidden

    def _layer(self, layer: int, block: Block, there: There) -> There:
        """Rows of all pieces → rows of those that stay"""
        graph = self.graph
        prunes = self.plan.needs_importance(layer, self.encoder.spec.n_attention_heads)
        with graph.part(f"layer.{layer}.projections"):
            asked = Asked.of(self.products, block.attention, there.hidden)
        with graph.part(f"layer.{layer}.attention"):
            bias = self._bias(block, there)
            if not prunes and _is_plain(block, there):
                return self._completed(
                    layer, block, there, attend(graph, block.attention, asked, bias)
                )
            seen = observe(graph, block.attention, asked, bias=bias, heads=there.heads)
        if not prunes:
            return self._completed(layer, block, there, seen.mixed)
        with graph.part(f"layer.{layer}.selection"):
            there, mixed = self.pruning.after(layer, there, seen)
        return self._completed(layer, block, there, mixed)

    def _first(self, layer: int, block: Block, there: There) -> str:
        """The last layer for the first piece alone: exact, for nobody reads the others.

        Rows, one a text
        """
        graph = self.graph
        with graph.part(f"layer.{layer}.projections"):
            first = self._first_rows(there.hidden)
            asked = Asked.of(self.products, block.attention, there.hidden, first=first)
        with graph.part(f"layer.{layer}.attention"):
            bias = self._bias(block, there)
            first_bias = (
                None if bias is None else graph.between(bias, graph.ints(0), graph.ints(1), axis=2)
            )
            if _is_plain(block, there):
                mixed = attend(graph, block.attention, asked, first_bias)
            else:
                mixed = observe(
                    graph, block.attention, asked, bias=first_bias, heads=there.heads
                ).mixed
        return self._completed(layer, block, replace(there, hidden=first), mixed).hidden

    def _first_rows(self, hidden: str) -> str:
        width = self.encoder.spec.width
        return self.products.joined(self.texts.first(self.products.apart(hidden, width)), width)

    def _completed(self, layer: int, block: Block, there: There, mixed: str) -> There:
        with self.graph.part(f"layer.{layer}.projections"):
            hidden = with_gathered(self.products, block, there.hidden, mixed)
        with self.graph.part(f"layer.{layer}.feed_forward"):
            hidden = fed_forward(self.products, block, self.encoder.spec.activation, hidden)
        return replace(there, hidden=hidden)

    def _places(self) -> str | None:
        """0, 1, 2, …: where each piece stands, if anybody will ask.

        (text, piece); of one text for all where nobody ever leaves
        """
        if self.encoder.relative_bias is None and not self.encoder.pruning.restore:
            return None
        graph = self.graph
        places = graph.constant(np.arange(self.encoder.spec.max_pieces)[None])
        here = graph.between(places, graph.ints(0), self.texts.n_pieces, axis=1)
        return (
            here
            if min(self.plan.pieces) == 1
            else graph.add("Expand", here, graph.add("Concat", self.texts.n, graph.ints(1), axis=0))
        )

    def _bias(self, block: Block, there: There) -> str | None:
        """MPNet's, by where the pieces stood; the same for all layers between which nobody left.

        (text, attention_head, query, key)
        """
        bias = self.encoder.relative_bias
        if bias is None:
            return None
        assert there.origin is not None
        if there.origin not in self.biases:
            self.biases[there.origin] = bias_by_distance(
                self.graph, bias, there.origin, max_pieces=self.encoder.spec.max_pieces
            )
        whole = self.biases[there.origin]
        return (
            whole
            if block.attention.has_all_heads
            else self.graph.pick(whole, self.graph.ints(*block.attention.heads), axis=1)
        )


def _is_plain(block: Block, there: There) -> bool:
    """Whether ONNX's own operator for attention says it all."""
    return there.heads is None and type(block.attention.weighting) is Softmax
