"""Pieces and attention heads that leave, in the file (attention/pruning.py,
attention/survivors.py).

How many pieces stay after a layer follows from the text's length: a table per layer, looked up.
Which ones, from their importance (removal_graph.py); the first piece is given an importance of
infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.attention.cascade import Cascade
from litotes.encoder.attention.keep_all import KeepAll
from litotes.encoder.attention.learned import LOG_RANGE, Learned
from litotes.encoder.attention.pruning import Plan, Pruning
from litotes.encoder.spec import EncoderSpec
from litotes.exporting.block_graph import GraphAttention
from litotes.exporting.graph import Graph
from litotes.exporting.products import Products, as_array
from litotes.exporting.removal_graph import (
    GraphState,
    Selection,
    select_all,
    select_kept,
    with_fused,
    without,
)
from litotes.exporting.texts_graph import Texts

EXPORTED: tuple[type[Pruning], ...] = (KeepAll, Cascade, Learned)
"""The prunings whose importance is written here."""


@dataclass(frozen=True)
class PruningGraph:
    """Writes what a pruning does after the attention of each layer."""

    products: Products
    texts: Texts
    pruning: Pruning
    plan: Plan
    spec: EncoderSpec

    def __post_init__(self) -> None:
        if type(self.pruning) not in EXPORTED:
            raise UserError(
                f"The pruning {type(self.pruning).__name__} cannot be exported to ONNX yet: use the"
                " torch runtime, or write its importance in exporting/pruning_graph.py."
            )

    @property
    def graph(self) -> Graph:
        return self.texts.graph

    def prune(
        self, layer: int, state: GraphState, attention: GraphAttention
    ) -> tuple[GraphState, str]:
        """The state after the attention of a layer, and what its pieces gathered, (text, piece,
        attention_head × head_width).
        """
        hidden = self.products.to_texts(state.hidden, self.spec.width)  # (text, piece, width)
        n_now = state.n_real
        if self.pruning.fuse:  # there may be one more
            n_now = self.graph.add("Shape", hidden, start=1, end=2)
        importance = self._importance(layer, state, attention, hidden, n_now)
        state = replace(state, importance=importance)
        if self.plan.needs_head_importance(layer, self.pruning.n_attention_heads):
            state = self._prune_heads(layer, state, attention, n_now)
        share_before = self.plan.pieces[layer - 1] if layer else 1.0
        if self.plan.pieces[layer] == share_before:
            return state, attention.mixed
        selection = self._select(layer, state, n_now)
        return self._remove(state, selection, hidden, attention.mixed)

    def _remove(
        self, state: GraphState, selection: Selection, hidden: str, mixed: str
    ) -> tuple[GraphState, str]:
        if self.pruning.restore:
            state = self._remember(state, selection, hidden)
        write = with_fused if self.pruning.fuse else without
        state, hidden, mixed = write(self.texts, state, selection, hidden, mixed)
        return replace(state, hidden=self.products.to_rows(hidden, self.spec.width)), mixed

    def restore(self, state: GraphState) -> str:
        """All pieces the texts came with, removed ones in the state they left in. Rows"""
        graph, texts = self.graph, self.texts
        assert state.origin is not None
        hidden = self.products.to_texts(state.hidden, self.spec.width)
        hidden = graph.first(hidden, state.n_real, axis=1)
        origin = graph.first(state.origin, state.n_real, axis=1)
        removed_hidden, removed_origins = zip(*state.removed, strict=True)
        states = graph.concat(hidden, *removed_hidden, axis=1)
        places = graph.concat(origin, *removed_origins, axis=1)  # (text, piece)
        # the piece that stands at 0, 1, 2, …
        _, order = graph.add_several("TopK", places, texts.n_pieces, n_outputs=2, largest=0)
        return self.products.to_rows(texts.gather(states, order), self.spec.width)

    def _importance(
        self, layer: int, state: GraphState, attention: GraphAttention, hidden: str, n: str
    ) -> str:
        """s_t = Σ_layers Σ_heads Σ_queries w[h, q, t], each weight times the length of its value
        where the pruning says so. (text, piece)

        The first piece is given infinity once, which it keeps. hidden: (text, piece, width). n: how
        many pieces there are, (1,)
        """
        pruning = self.pruning
        received = self.texts.sum_pieces(attention.weights, n)  # (text, attention_head, piece)
        if pruning.by_value:
            received = self.graph.times(received, self._value_lengths(attention))
        total = self.texts.sum_pieces(received, self.graph.ints(attention.n_heads))
        total = self.graph.plus(total, state.importance or self._initial_importance(n))
        if isinstance(pruning, Learned) and pruning.scorers is not None:
            total = self.graph.times(total, self._factor(pruning.scorers.weight[layer], hidden))
        return total

    def _initial_importance(self, n: str) -> str:
        """Infinity for the first piece, 0 for the others. (piece,)"""
        first = np.zeros(self.texts.most_pieces, dtype=np.float32)
        first[0] = np.inf
        return self.graph.first(self.graph.constant(first), n)

    def _value_lengths(self, attention: GraphAttention) -> str:
        """(text, attention_head, piece)"""
        graph = self.graph
        value = graph.reshape(attention.value, 0, 0, attention.n_heads, -1)
        # (text, piece, attention_head)
        lengths = graph.add("ReduceL2", value, graph.ints(3), keepdims=0)
        return graph.transpose(lengths, 0, 2, 1)

    def _factor(self, scorer: Tensor, hidden: str) -> str:
        """What a learned scorer multiplies importance by, e^{u·h_t} within its range.

        (text, piece)
        """
        graph = self.graph
        direction = as_array(scorer) / np.float32(LOG_RANGE)
        score = graph.add("Tanh", graph.matmul(hidden, graph.constant(direction)))
        return graph.add("Exp", graph.times(score, graph.number(LOG_RANGE)))

    def _prune_heads(
        self, layer: int, state: GraphState, attention: GraphAttention, n: str
    ) -> GraphState:
        """The attention heads with the largest outputs, Σ_t Σ_d |E_{h,t,d}| over all layers so far,
        go on. n: how many pieces, (1,)
        """
        size = total = self._head_sizes(attention, n)
        if state.head_importance is not None:
            total = self.graph.plus(size, state.head_importance)
        state = replace(state, head_importance=total)
        n_heads = self.pruning.n_attention_heads
        n_before = self.plan.n_heads(layer - 1, n_heads) if layer else n_heads
        n_kept = self.plan.n_heads(layer, n_heads)
        if n_kept == n_before:
            return state
        return replace(state, heads=self._best_heads(state, size, n_kept))

    def _head_sizes(self, attention: GraphAttention, n: str) -> str:
        """How large the outputs of each attention head are. (text, attention_head)"""
        texts = self.texts
        # (text, attention_head × head_width)
        by_width = texts.sum_pieces(self.graph.add("Abs", attention.mixed), n)
        by_head = texts.reshape(by_width, self.pruning.n_attention_heads, -1)
        return self.graph.sum(by_head, 2)

    def _best_heads(self, state: GraphState, size: str, n_kept: int) -> str:
        """1 for the most important attention heads of each text, 0 for the others.

        size: of this layer's outputs, finite, (text, attention_head)
        """
        graph, score = self.graph, state.head_importance
        assert score is not None
        if state.heads is not None:
            score = self._lower_removed(score, state.heads)
        _, places = graph.add_several("TopK", score, graph.ints(n_kept), n_outputs=2)
        heads = graph.mark(places, like=size, axis=1)
        return self.texts.reshape(heads, self.pruning.n_attention_heads, 1, 1)

    def _lower_removed(self, score: str, heads: str) -> str:
        """Scores in which removed heads have −1, below every sum, so that none comes back."""
        used = self.texts.reshape(heads, -1)
        score = self.graph.times(score, used)
        return self.graph.plus(score, self.graph.minus(used, self.graph.number(1)))

    def _select(self, layer: int, state: GraphState, n_now: str) -> Selection:
        # how many pieces stay of texts of 0, 1, 2, … pieces
        counts = self.plan.counts(layer, range(1, self.spec.max_pieces + 1))
        n_kept = self.graph.gather(self.graph.ints(0, *counts), self.texts.n_pieces)  # (1,)
        if self.pruning.fuse or self.pruning.restore:
            return select_all(self.texts, state, n_kept, n_now)
        return select_kept(self.texts, state, n_kept)

    def _remember(self, state: GraphState, selection: Selection, hidden: str) -> GraphState:
        """Keeps what leaves, to restore it at the end."""
        assert state.origin is not None
        states = self.texts.gather(hidden, selection.removed_real)
        origins = self.texts.gather(state.origin, selection.removed_real)
        return replace(state, removed=(*state.removed, (states, origins)))
