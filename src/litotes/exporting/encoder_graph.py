"""The walk of an encoder in the file, for texts of equal length: embeddings, blocks, and the pieces
left for the heads to read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litotes.core.errors import UserError
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.softmax import Softmax
from litotes.encoder.encoder import Attention, Block, Encoder
from litotes.exporting.block_graph import (
    Projections,
    write_attention,
    write_attention_input,
    write_attention_output,
    write_attention_with_weights,
    write_feed_forward,
    write_projections,
)
from litotes.exporting.distance_graph import (
    DistanceGraph,
    write_relative_bias,
    write_turned,
    write_window,
)
from litotes.exporting.embedding_graph import write_embeddings, write_norm
from litotes.exporting.products import Products
from litotes.exporting.pruning_graph import PruningGraph
from litotes.exporting.removal_graph import GraphState
from litotes.exporting.texts_graph import Texts
from litotes.prediction.onnx_file import PIECES, SEGMENTS


class EncoderWalk:
    """The walk layer by layer, and what all layers share.

    firsts_only: the heads read nothing but the first piece of each text.
    """

    def __init__(
        self, products: Products, encoder: Encoder, texts: Texts, *, firsts_only: bool
    ) -> None:
        self.products, self.graph, self.texts = products, products.graph, texts
        self.encoder, self.spec, self.firsts_only = encoder, encoder.spec, firsts_only
        plan = encoder.pruning.plan()
        self.plan = plan.for_firsts_only() if firsts_only else plan
        self.pruning = PruningGraph(products, texts, encoder.pruning, self.plan, encoder.spec)
        self.distances = None
        if encoder.distances is not None:
            with products.graph.part("embeddings"):
                self.distances = DistanceGraph(texts, encoder.distances)
        # by origin: written once for layers between which no piece left
        self.by_pair: dict[str, str] = {}
        self.windows: dict[str, str] = {}

    @property
    def n_layers(self) -> int:
        return len(self.spec.walk)

    def write_start(self) -> GraphState:
        """What the first layer reads."""
        with self.graph.part("embeddings"):
            embeddings = self.encoder.embeddings
            hidden = write_embeddings(self.products, embeddings, self.texts, PIECES, SEGMENTS)
            return GraphState(hidden, self._places(), self.texts.n_pieces)

    def write_layers(self, state: GraphState, layers: range) -> GraphState:
        """Some layers before the last."""
        for layer in layers:
            state = self._write_layer(layer, self._block(layer), state)
        return state

    def write_end(self, state: GraphState, first: int) -> str:
        """The layers from `first` on. Hidden states of every piece the heads read, as rows; only of
        the first if they read nothing else.
        """
        last = self.n_layers - 1
        state = self.write_layers(state, range(first, last))
        if self.firsts_only:
            return self._finish(self._write_firsts(last, self._block(last), state))
        state = self._write_layer(last, self._block(last), state)
        return self._finish(self.pruning.restore(state) if state.removed else state.hidden)

    def _block(self, layer: int) -> Block:
        block = self.encoder.blocks[self.spec.walk[layer]]
        assert isinstance(block, Block)
        return block

    @property
    def has_origin_by_text(self) -> bool:
        """Whether where pieces stand differs from text to text."""
        return min(self.plan.pieces) < 1

    def _finish(self, hidden: str) -> str:
        """Rows of hidden states, normed where norms come first."""
        norm = self.encoder.final_norm
        if norm is None:
            return hidden
        with self.graph.part("head"):
            return write_norm(self.graph, hidden, norm)

    def _write_layer(self, layer: int, block: Block, state: GraphState) -> GraphState:
        """Rows of all pieces → rows of those that stay"""
        graph, attention = self.graph, block.attention
        prunes = self.plan.needs_importance(layer, self.spec.n_attention_heads)
        with graph.part(f"layer.{layer}.projections"):
            read = write_attention_input(self.products, block, state.hidden)
            projections = write_projections(self.products, attention, read)
        with graph.part(f"layer.{layer}.attention"):
            projections = self._turn(layer, attention, state, projections)
            bias = self._bias(layer, attention, state, projections)
        if not prunes:
            with graph.part(f"layer.{layer}.attention"):
                mixed = self._write_mixed(block, state, projections, bias)
            return self._complete(layer, block, state, mixed)
        with graph.part(f"layer.{layer}.attention"):
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
                self.products,
                block.attention,
                write_attention_input(self.products, block, state.hidden),
                first=write_attention_input(self.products, block, first),
            )
        with graph.part(f"layer.{layer}.attention"):
            projections = self._turn(layer, block.attention, state, projections, firsts_only=True)
            bias = self._bias(layer, block.attention, state, projections, firsts_only=True)
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
        encoder, spec = self.encoder, self.spec
        by_distance = encoder.relative_bias is not None or encoder.distances is not None
        if not (by_distance or spec.rotary_base or spec.window or encoder.pruning.restore):
            return None
        graph = self.graph
        places = graph.constant(np.arange(self.spec.max_pieces)[None])
        here = graph.first(places, self.texts.n_pieces, axis=1)
        if not self.has_origin_by_text:
            return here
        return graph.add("Expand", here, graph.concat(self.texts.n, graph.ints(1), axis=0))

    def _turn(
        self,
        layer: int,
        attention: Attention,
        state: GraphState,
        projections: Projections,
        *,
        firsts_only: bool = False,
    ) -> Projections:
        """Queries and keys turned by where they stand, where positions are rotary."""
        base = self.spec.local_rotary_base if self.spec.is_local(layer) else self.spec.rotary_base
        origin, turned = state.origin, projections
        if not base or origin is None:
            return projections
        if not firsts_only:  # a first piece stands at 0, where nothing is turned
            query = write_turned(self.texts, attention, projections.query, origin, base=base)
            turned = replace(turned, query=query)
        key = write_turned(self.texts, attention, projections.key, origin, base=base)
        return replace(turned, key=key)

    def _bias(
        self,
        layer: int,
        attention: Attention,
        state: GraphState,
        projections: Projections,
        *,
        firsts_only: bool = False,
    ) -> str | None:
        """What is added to the affinities by where pieces stood; None: nothing.

        (text or 1, attention_head or 1, query, key)
        """
        graph, origin = self.graph, state.origin
        if origin is None:
            return None
        bias = None
        if self.encoder.relative_bias is not None:
            bias = self._relative_bias(attention, origin)
            bias = graph.first(bias, 1, axis=2) if firsts_only else bias
        if self.distances is not None:
            if origin not in self.by_pair:
                self.by_pair[origin] = self.distances.write_places(origin)
            places = self.by_pair[origin]
            places = graph.first(places, 1, axis=1) if firsts_only else places
            bias = self.distances.write_bias(attention, projections, places)
        if self.spec.is_local(layer) and self.spec.window // 2 < self.spec.max_pieces - 1:
            window = self._window(attention, origin)
            window = graph.first(window, 1, axis=2) if firsts_only else window
            bias = window if bias is None else graph.plus(bias, window)
        return bias

    def _relative_bias(self, attention: Attention, origin: str) -> str:
        """MPNet's. (text, attention_head, query, key)"""
        relative, graph = self.encoder.relative_bias, self.graph
        assert relative is not None
        if origin not in self.by_pair:
            self.by_pair[origin] = write_relative_bias(
                graph, relative, origin, max_pieces=self.spec.max_pieces
            )
        bias = self.by_pair[origin]
        if attention.has_all_heads:
            return bias
        return graph.gather(bias, graph.ints(*attention.heads), axis=1)

    def _window(self, attention: Attention, origin: str) -> str:
        """(text, 1, query, key)"""
        if not isinstance(attention.weighting, Softmax | Entmax):
            raise UserError(
                f"The weighting {self.spec.weighting!r} in local layers cannot be exported to ONNX"
                " yet: use the torch runtime, or train with softmax or entmax."
            )
        if origin not in self.windows:
            self.windows[origin] = write_window(self.graph, origin, window=self.spec.window)
        return self.windows[origin]
