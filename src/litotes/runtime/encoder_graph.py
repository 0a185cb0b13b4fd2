"""The walk of an encoder in the file, for one text without padding: embeddings, blocks, and who is left for the heads to read."""

from __future__ import annotations

from dataclasses import replace

from litotes.attention.softmax import Softmax
from litotes.encoders.encoder import Block, Encoder
from litotes.runtime.block_graph import Asked, attend, fed_forward, first_row, observe, with_gathered
from litotes.runtime.contents import PIECES, SEGMENTS
from litotes.runtime.embedding_graph import bias_by_distance, embedded
from litotes.runtime.products import Products
from litotes.runtime.pruning_graph import PruningGraph, There, restored


def encoded(products: Products, encoder: Encoder, *, firsts_only: bool) -> str:
    """Hidden states of every piece the heads read, (piece, width); of the first alone where they read nothing else."""
    return _Walk(products, encoder, firsts_only=firsts_only).hidden()


class _Walk:
    """What all layers of one walk know."""

    def __init__(self, products: Products, encoder: Encoder, *, firsts_only: bool) -> None:
        self.products, self.graph, self.encoder, self.firsts_only = products, products.graph, encoder, firsts_only
        plan = encoder.pruning.plan()
        self.plan = plan.to_firsts() if firsts_only else plan
        with self.graph.part("embeddings"):
            self.n = self.graph.add("Shape", PIECES)  # (1,)
        self.pruning = PruningGraph(self.graph, encoder.pruning, self.plan, self.n, encoder.spec.max_pieces)
        self.biases: dict[str, str] = {}

    def hidden(self) -> str:
        graph, spec = self.graph, self.encoder.spec
        with graph.part("embeddings"):
            hidden = embedded(self.products, self.encoder.embeddings, PIECES, SEGMENTS, self.n)
            there = There(hidden, self._places(), self.n)
        for layer, number in enumerate(spec.walk):
            block = self.encoder.blocks[number]
            assert isinstance(block, Block)
            if self.firsts_only and layer == len(spec.walk) - 1:
                return self._first(layer, block, there)
            there = self._layer(layer, block, there)
        return restored(graph, there) if there.left else there.hidden

    def _layer(self, layer: int, block: Block, there: There) -> There:
        """(piece, width) → (piece that stays, width)"""
        graph = self.graph
        prunes = self.plan.looks_at(layer, self.encoder.spec.n_attention_heads)
        with graph.part(f"layer.{layer}.projections"):
            asked = Asked.of(self.products, block.attention, there.hidden)
        with graph.part(f"layer.{layer}.attention"):
            bias = self._bias(block, there)
            if not prunes and self._is_plain(block, there):
                return self._completed(layer, block, there, attend(graph, block.attention, asked))
            seen = observe(graph, block.attention, asked, bias=bias, heads=there.heads)
        if not prunes:
            return self._completed(layer, block, there, seen.mixed)
        with graph.part(f"layer.{layer}.selection"):
            there, mixed = self.pruning.after(layer, there, seen)
        return self._completed(layer, block, there, mixed)

    def _first(self, layer: int, block: Block, there: There) -> str:
        """The last layer for the first piece alone: exact, for nobody reads the others. (1, width)"""
        graph = self.graph
        with graph.part(f"layer.{layer}.projections"):
            asked = Asked.of(self.products, block.attention, there.hidden, firsts_only=True)
            first = replace(there, hidden=first_row(graph, there.hidden))
        with graph.part(f"layer.{layer}.attention"):
            if self._is_plain(block, there):
                mixed = attend(graph, block.attention, asked)
            else:
                bias = self._bias(block, there)
                first_bias = None if bias is None else graph.add("Slice", bias, graph.ints(0), graph.ints(1), graph.ints(1))
                mixed = observe(graph, block.attention, asked, bias=first_bias, heads=there.heads).mixed
        return self._completed(layer, block, first, mixed).hidden

    def _is_plain(self, block: Block, there: There) -> bool:
        """Whether ONNX's own operator for attention says it all."""
        return self.encoder.relative_bias is None and there.heads is None and type(block.attention.weighting) is Softmax

    def _completed(self, layer: int, block: Block, there: There, mixed: str) -> There:
        with self.graph.part(f"layer.{layer}.projections"):
            hidden = with_gathered(self.products, block, there.hidden, mixed)
        with self.graph.part(f"layer.{layer}.feed_forward"):
            hidden = fed_forward(self.products, block, self.encoder.spec.activation, hidden)
        return replace(there, hidden=hidden)

    def _places(self) -> str | None:
        """0, 1, 2, …: where each piece stands, if anybody will ask. (piece,)"""
        if self.encoder.relative_bias is None and not self.encoder.pruning.restore:
            return None
        return self.graph.rows(self.graph.ints(*range(self.encoder.spec.max_pieces)), self.graph.ints(0), self.n)

    def _bias(self, block: Block, there: There) -> str | None:
        """MPNet's, by where the pieces stood; the same for all layers between which nobody left. (attention_head, query, key)"""
        bias = self.encoder.relative_bias
        if bias is None:
            return None
        assert there.origin is not None
        if there.origin not in self.biases:
            self.biases[there.origin] = bias_by_distance(self.graph, bias, there.origin, max_pieces=self.encoder.spec.max_pieces)
        whole = self.biases[there.origin]
        return whole if block.attention.has_all_heads else self.graph.pick(whole, self.graph.ints(*block.attention.heads))
