"""Pieces and attention heads that leave, in the file (attention/pruning.py,
attention/survivors.py).

How many pieces stay after a layer follows from the text's length: a table per layer, looked up.
Which ones, from their importance:

    importance  →  TopK  →  places in their old order  →  GatherND of hidden and mixed

Texts of equal length keep equally many pieces, so a group stays a group. Of two equally important
pieces the earlier one stays; ONNX's TopK has the same rule. The first piece is given an importance
of infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from litotes.attention.cascade import Cascade
from litotes.attention.keep_all import KeepAll
from litotes.attention.learned import LOG_RANGE, Learned
from litotes.attention.pruning import Plan, Pruning
from litotes.core.errors import UserError
from litotes.encoders.spec import EncoderSpec
from litotes.export.block_graph import GraphAttention
from litotes.export.graph import Graph
from litotes.export.products import Products, as_array
from litotes.export.texts_graph import Texts

EXPORTED: tuple[type[Pruning], ...] = (KeepAll, Cascade, Learned)
"""The prunings whose importance is written here."""


@dataclass(frozen=True)
class GraphState:
    """What goes from layer to layer, by the names of the tensors.

    hidden: rows.
    origin: the place each piece had in its text, (text, piece), 0 for a fused one; None where it is
    not needed.
    n_real: how many pieces a text has, not counting a fused one, which is its last. (1,)
    importance: (text, piece); None before it is first needed.
    heads: 1 for the attention heads still used, 0 for the others, (text, attention_head, 1, 1);
    None: all.
    head_importance: (text, attention_head).
    removed: the states (text, piece, width) and origins (text, piece) of pieces that left, layer by
    layer.
    """

    hidden: str
    origin: str | None
    n_real: str
    importance: str | None = None
    heads: str | None = None
    head_importance: str | None = None
    removed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Selection:
    """Places of the pieces that stay, in order, and of those that leave, all (text, piece).

    n_kept: how many stay, (1,). A fused piece always leaves: `removed_real` is without it. Where
    the leaving pieces are not needed, their names are empty.
    """

    n_kept: str
    kept: str
    removed_real: str = ""
    removed: str = ""


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
                " torch runtime, or write its importance in export/pruning_graph.py."
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
        pruning, plan = self.pruning, self.plan
        hidden = self.products.to_texts(state.hidden, self.spec.width)  # (text, piece, width)
        n_now = state.n_real
        if pruning.fuse:  # there may be one more
            n_now = self.graph.add("Shape", hidden, start=1, end=2)
        importance = self._importance(layer, state, attention, hidden, n_now)
        state = replace(state, importance=importance)
        if plan.needs_head_importance(layer, pruning.n_attention_heads):
            state = self._prune_heads(layer, state, attention, n_now)
        if plan.pieces[layer] == (plan.pieces[layer - 1] if layer else 1.0):
            return state, attention.mixed
        selection = self._select(layer, state, n_now)
        if pruning.restore:
            state = self._remember(state, selection, hidden)
        write = _with_fused if pruning.fuse else _without
        state, hidden, mixed = write(self.texts, state, selection, hidden, attention.mixed)
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
        graph, texts, pruning = self.graph, self.texts, self.pruning
        received = texts.sum_pieces(attention.weights, n)  # (text, attention_head, piece)
        if isinstance(pruning, Cascade | Learned) and pruning.by_value:
            received = graph.times(received, self._value_lengths(attention))
        total = texts.sum_pieces(received, graph.ints(attention.n_heads))  # (text, piece)
        before = state.importance or self._initial_importance(n)
        total = graph.plus(total, before)
        if isinstance(pruning, Learned) and pruning.scorers is not None:
            total = graph.times(total, self._factor(pruning.scorers.weight[layer], hidden))
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
        graph, texts, score = self.graph, self.texts, state.head_importance
        assert score is not None
        if state.heads is not None:  # below every sum, so that no removed head comes back
            used = texts.reshape(state.heads, -1)
            score = graph.times(score, used)
            score = graph.plus(score, graph.minus(used, graph.number(1)))
        _, places = graph.add_several("TopK", score, graph.ints(n_kept), n_outputs=2)
        heads = graph.mark(places, like=size, axis=1)
        return texts.reshape(heads, self.pruning.n_attention_heads, 1, 1)

    def _select(self, layer: int, state: GraphState, n_now: str) -> Selection:
        # how many pieces stay of texts of 0, 1, 2, … pieces
        counts = self.plan.counts(layer, range(1, self.spec.max_pieces + 1))
        n_kept = self.graph.gather(self.graph.ints(0, *counts), self.texts.n_pieces)  # (1,)
        if self.pruning.fuse or self.pruning.restore:
            return _select_all(self.texts, state, n_kept, n_now)
        return _select_kept(self.texts, state, n_kept)

    def _remember(self, state: GraphState, selection: Selection, hidden: str) -> GraphState:
        """Keeps what leaves, to restore it at the end."""
        assert state.origin is not None
        states = self.texts.gather(hidden, selection.removed_real)
        origins = self.texts.gather(state.origin, selection.removed_real)
        return replace(state, removed=(*state.removed, (states, origins)))


def _select_kept(texts: Texts, state: GraphState, n_kept: str) -> Selection:
    """Where it does not matter which pieces leave."""
    assert state.importance is not None
    _, best = texts.graph.add_several("TopK", state.importance, n_kept, n_outputs=2, sorted=0)
    return Selection(n_kept, _sort(texts.graph, best, n_kept))


def _select_all(texts: Texts, state: GraphState, n_kept: str, n_now: str) -> Selection:
    """All pieces but a fused one, put in order of importance."""
    graph = texts.graph
    assert state.importance is not None
    score = graph.first(state.importance, state.n_real, axis=1)
    _, order = graph.add_several("TopK", score, state.n_real, n_outputs=2)
    kept = _sort(graph, graph.first(order, n_kept, axis=1), n_kept)
    removed_real = graph.slice(order, n_kept, state.n_real, axis=1)
    removed = graph.concat(removed_real, _fused_places(texts, state, n_now), axis=1)
    return Selection(n_kept, kept, removed_real, removed)


def _fused_places(texts: Texts, state: GraphState, n_now: str) -> str:
    """The place of each text's fused piece. (text, 0 or 1)"""
    graph = texts.graph
    start, end = graph.add("Squeeze", state.n_real), graph.add("Squeeze", n_now)
    place = graph.add("Range", start, end, graph.constant(np.int64(1)))
    return graph.add("Expand", place, graph.concat(texts.n, graph.ints(1), axis=0))


def _sort(graph: Graph, places: str, n: str) -> str:
    """The n places in ascending order."""
    return graph.add_several("TopK", places, n, n_outputs=2, largest=0)[0]


def _without(
    texts: Texts, state: GraphState, selection: Selection, hidden: str, mixed: str
) -> tuple[GraphState, str, str]:
    """The pieces that stay."""
    assert state.importance is not None
    kept, origin = selection.kept, state.origin
    if origin is not None:
        origin = texts.gather(origin, kept)
    importance = texts.gather(state.importance, kept)
    state = replace(state, origin=origin, importance=importance, n_real=selection.n_kept)
    return state, texts.gather(hidden, kept), texts.gather(mixed, kept)


def _with_fused(
    texts: Texts, state: GraphState, selection: Selection, hidden: str, mixed: str
) -> tuple[GraphState, str, str]:
    """The pieces that stay and, if any leave, one more in their place: their mean weighted by
    importance.
    """
    graph, kept, removed = texts.graph, selection.kept, selection.removed
    assert state.importance is not None
    importance = texts.gather(state.importance, removed)  # (text, leaving piece)
    shares = _shares(graph, importance)
    # No row where no piece leaves, so that nothing is added there.
    n_fused = graph.add("Min", graph.add("Shape", removed, start=1), graph.ints(1))
    shares = graph.first(shares, n_fused, axis=1)  # (text, 0 or 1, leaving piece)
    total = graph.first(graph.sum(importance, 1, keep=True), n_fused, axis=1)
    importance = graph.concat(texts.gather(state.importance, kept), total, axis=1)
    origin = state.origin
    if origin is not None:
        zeros = graph.add("Expand", graph.ints(0), graph.concat(texts.n, n_fused, axis=0))
        origin = graph.concat(texts.gather(origin, kept), zeros, axis=1)
    state = replace(state, origin=origin, importance=importance, n_real=selection.n_kept)
    hidden = _append_mean(texts, selection, shares, hidden)
    return state, hidden, _append_mean(texts, selection, shares, mixed)


def _shares(graph: Graph, importance: str) -> str:
    """The leaving pieces' importance, summing to 1. (text, leaving piece) → (text, 1, …)"""
    clamped = graph.add("Max", importance, graph.constant(np.finfo(np.float32).tiny))
    shares = graph.over(clamped, graph.sum(clamped, 1, keep=True))
    return graph.unsqueeze(shares, 1)


def _append_mean(texts: Texts, selection: Selection, shares: str, values: str) -> str:
    """The pieces that stay, and the mean of those that leave, by their shares."""
    graph = texts.graph
    # (text, 0 or 1, width)
    mean = graph.matmul(shares, texts.gather(values, selection.removed))
    return graph.concat(texts.gather(values, selection.kept), mean, axis=1)
