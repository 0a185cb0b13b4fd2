"""Which pieces stay, which leave, and how the state of a text closes up, in the file
(attention/survivors.py).

    importance  →  TopK  →  places in their old order  →  GatherND of hidden and mixed

Texts of equal length keep equally many pieces, so a group stays a group. Of two equally important
pieces the earlier one stays; ONNX's TopK has the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litotes.exporting.graph import Graph
from litotes.exporting.texts_graph import Texts


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


def select_kept(texts: Texts, state: GraphState, n_kept: str) -> Selection:
    """Where it does not matter which pieces leave."""
    assert state.importance is not None
    _, best = texts.graph.add_several("TopK", state.importance, n_kept, n_outputs=2, sorted=0)
    return Selection(n_kept, _sort(texts.graph, best, n_kept))


def select_all(texts: Texts, state: GraphState, n_kept: str, n_now: str) -> Selection:
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


def without(
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


def with_fused(
    texts: Texts, state: GraphState, selection: Selection, hidden: str, mixed: str
) -> tuple[GraphState, str, str]:
    """The pieces that stay and, if any leave, one more in their place: their mean weighted by
    importance.
    """
    graph, kept, removed = texts.graph, selection.kept, selection.removed
    assert state.importance is not None
    leaving = texts.gather(state.importance, removed)  # (text, leaving piece)
    n_removed = graph.add("Shape", removed, start=1)
    shares = _shares(texts, leaving, n_removed)
    # No row where no piece leaves, so that nothing is added there.
    n_fused = graph.add("Min", n_removed, graph.ints(1))
    shares = graph.first(shares, n_fused, axis=1)  # (text, 0 or 1, leaving piece)
    total = graph.first(_sum(texts, leaving, n_removed), n_fused, axis=1)
    importance = graph.concat(texts.gather(state.importance, kept), total, axis=1)
    origin = state.origin
    if origin is not None:
        zeros = graph.add("Expand", graph.ints(0), graph.concat(texts.n, n_fused, axis=0))
        origin = graph.concat(texts.gather(origin, kept), zeros, axis=1)
    state = replace(state, origin=origin, importance=importance, n_real=selection.n_kept)
    hidden = _append_mean(texts, selection, shares, hidden)
    return state, hidden, _append_mean(texts, selection, shares, mixed)


def _shares(texts: Texts, importance: str, n: str) -> str:
    """The importance of n leaving pieces, summing to 1. (text, leaving piece) → (text, 1, …)"""
    graph = texts.graph
    clamped = graph.add("Max", importance, graph.constant(np.finfo(np.float32).tiny))
    shares = graph.over(clamped, _sum(texts, clamped, n))
    return graph.unsqueeze(shares, 1)


def _sum(texts: Texts, values: str, n: str) -> str:
    """(text, piece) → (text, 1), the sum of n pieces."""
    return texts.sum_pieces(texts.graph.unsqueeze(values, 2), n)


def _append_mean(texts: Texts, selection: Selection, shares: str, values: str) -> str:
    """The pieces that stay, and the mean of those that leave, by their shares."""
    graph = texts.graph
    # (text, 0 or 1, width)
    mean = graph.matmul(shares, texts.gather(values, selection.removed))
    return graph.concat(texts.gather(values, selection.kept), mean, axis=1)
