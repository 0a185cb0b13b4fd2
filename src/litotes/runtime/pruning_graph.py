"""Pieces and attention heads that leave, in the file (attention/pruning.py, attention/survivors.py).

How many pieces stay after a layer follows from the text's length: a table per layer, looked up. Which ones, from their importance:

    importance  →  TopK  →  places in their old order  →  Gather of what they were and what they gathered

Of two pieces alike the earlier one stays; ONNX's TopK has the same rule. The first piece is given an importance of infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litotes.attention.cascade import Cascade
from litotes.attention.keep_all import KeepAll
from litotes.attention.learned import LOG_RANGE, Learned
from litotes.attention.pruning import Plan, Pruning
from litotes.errors import UserError
from litotes.runtime.block_graph import Attended
from litotes.runtime.graph import Graph
from litotes.runtime.products import as_array


@dataclass(frozen=True)
class There:
    """What goes from layer to layer, by the names of the tensors.

    hidden: (piece, width). origin: the place each piece had in the text, (piece,), 0 for a fused one; None where nobody asks.
    n_real: how many pieces there are beside a fused one, which is the last, (1,). importance: (piece,); None before anybody asked.
    heads: 1 for the attention heads still used, 0 for the others, (attention_head, 1, 1); None: all. head_importance:
    (attention_head,). left: the states and origins of pieces that left, layer by layer.
    """

    hidden: str
    origin: str | None
    n_real: str
    importance: str | None = None
    heads: str | None = None
    head_importance: str | None = None
    left: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Leaving:
    """Places of the pieces that stay, in order, and of those that leave, all (piece,); the fused piece, if there is one, leaves."""

    stay: str
    leave_real: str
    leave: str


@dataclass(frozen=True)
class PruningGraph:
    """Writes what a pruning does after the attention of each layer. n: the name of the text's length when it came, (1,)."""

    graph: Graph
    pruning: Pruning
    plan: Plan
    n: str
    max_pieces: int

    def __post_init__(self) -> None:
        if type(self.pruning) not in (KeepAll, Cascade, Learned):
            raise UserError(f"The pruning {type(self.pruning).__name__} cannot be exported to ONNX yet: use the torch runtime.")

    def after(self, layer: int, there: There, seen: Attended) -> tuple[There, str]:
        """What is there after the attention of a layer, and what those pieces gathered."""
        graph, pruning, plan = self.graph, self.pruning, self.plan
        there = replace(there, importance=_importance(graph, pruning, layer, there, seen))
        if plan.weighs_heads(layer, pruning.n_attention_heads):
            there = _with_fewer_heads(graph, there, seen, plan, layer, pruning.n_attention_heads)
        if plan.pieces[layer] == (plan.pieces[layer - 1] if layer else 1.0):
            return there, seen.mixed
        n_stay = graph.pick(self._counts(layer), self.n)  # (1,)
        leaving = _choose(graph, there, n_stay, asked=pruning.fuse or pruning.restore)
        if pruning.restore:
            assert there.origin is not None
            gone = (graph.pick(there.hidden, leaving.leave_real), graph.pick(there.origin, leaving.leave_real))
            there = replace(there, left=(*there.left, gone))
        if not pruning.fuse:
            return _without(graph, there, leaving, n_stay), graph.pick(seen.mixed, leaving.stay)
        return _with_fused(graph, there, leaving, n_stay, seen.mixed)

    def _counts(self, layer: int) -> str:
        """How many pieces stay of texts of 0, 1, 2, … pieces."""
        return self.graph.ints(0, *self.plan.counts(layer, range(1, self.max_pieces + 1)))


def restored(graph: Graph, there: There) -> str:
    """All pieces the text came with, those gone in the state they left in. (piece, width)"""
    assert there.origin is not None
    hidden, origin = (graph.rows(values, graph.ints(0), there.n_real) for values in (there.hidden, there.origin))
    states = graph.add("Concat", hidden, *(left[0] for left in there.left), axis=0)
    places = graph.add("Concat", origin, *(left[1] for left in there.left), axis=0)
    return graph.add("ScatterND", states, graph.add("Unsqueeze", places, graph.ints(1)), states)


def _importance(graph: Graph, pruning: Pruning, layer: int, there: There, seen: Attended) -> str:
    """s_t = Σ_layers Σ_heads Σ_queries w[h, q, t], each weight by the length of its value where the pruning says so. (piece,)"""
    if isinstance(pruning, Cascade | Learned) and pruning.by_value:
        received = graph.total(seen.weights, 1)  # (attention_head, piece)
        lengths = graph.add("ReduceL2", seen.value, graph.ints(2), keepdims=0)  # (piece, attention_head)
        total = graph.total(graph.add("Mul", received, graph.add("Transpose", lengths, perm=[1, 0])), 0)
    else:
        total = graph.total(seen.weights, 0, 1)
    if there.importance is not None:
        total = graph.add("Add", total, there.importance)
    if isinstance(pruning, Learned) and pruning.scorers is not None:
        direction = as_array(pruning.scorers.weight)[layer] / np.float32(LOG_RANGE)
        score = graph.add("Tanh", graph.add("MatMul", there.hidden, graph.constant(direction)))  # (piece,)
        total = graph.add("Mul", total, graph.add("Exp", graph.add("Mul", score, graph.number(LOG_RANGE))))
    return total


def _with_fewer_heads(graph: Graph, there: There, seen: Attended, plan: Plan, layer: int, n_heads: int) -> There:
    """The attention heads with the largest outputs, Σ_t Σ_d |E_{h,t,d}| over all layers so far, go on."""
    size = graph.total(graph.add("Abs", seen.by_head), 1, 2)  # (attention_head,)
    total = size if there.head_importance is None else graph.add("Add", size, there.head_importance)
    there = replace(there, head_importance=total)
    if plan.n_heads(layer, n_heads) == (plan.n_heads(layer - 1, n_heads) if layer else n_heads):
        return there
    if there.heads is not None:  # below every sum, so that no head comes back
        gone = graph.add("Sub", graph.reshape(there.heads, -1), graph.number(1))
        total = graph.add("Add", graph.add("Mul", total, graph.reshape(there.heads, -1)), gone)
    _, places = graph.add_several("TopK", total, graph.ints(plan.n_heads(layer, n_heads)), n_outputs=2)
    ones = graph.constant(np.ones(plan.n_heads(layer, n_heads), dtype=np.float32))
    used = graph.add("ScatterElements", graph.constant(np.zeros(n_heads, dtype=np.float32)), places, ones)
    return replace(there, heads=graph.reshape(used, -1, 1, 1))


def _choose(graph: Graph, there: There, n_stay: str, *, asked: bool) -> Leaving:
    """asked: whether anybody wants to know who leaves; all pieces are then put in order of importance."""
    assert there.importance is not None
    first = graph.constant(np.array([np.inf], dtype=np.float32))
    score = graph.add("Concat", first, graph.rows(there.importance, graph.ints(1), there.n_real), axis=0)
    if not asked:
        _, best = graph.add_several("TopK", score, n_stay, n_outputs=2, sorted=0)
        return Leaving(_in_order(graph, best, n_stay), "", "")
    _, order = graph.add_several("TopK", score, there.n_real, n_outputs=2)
    stay = _in_order(graph, graph.rows(order, graph.ints(0), n_stay), n_stay)
    leave_real = graph.rows(order, n_stay, there.n_real)
    n_now = graph.add("Shape", there.hidden, start=0, end=1)
    fused = graph.add("Range", *(graph.add("Squeeze", end) for end in (there.n_real, n_now)), graph.constant(np.int64(1)))
    return Leaving(stay, leave_real, graph.add("Concat", leave_real, fused, axis=0))


def _in_order(graph: Graph, places: str, n: str) -> str:
    return graph.add_several("TopK", places, n, n_outputs=2, largest=0)[0]


def _without(graph: Graph, there: There, leaving: Leaving, n_stay: str) -> There:
    assert there.importance is not None
    hidden, importance = (graph.pick(values, leaving.stay) for values in (there.hidden, there.importance))
    origin = None if there.origin is None else graph.pick(there.origin, leaving.stay)
    return replace(there, hidden=hidden, origin=origin, importance=importance, n_real=n_stay)


def _with_fused(graph: Graph, there: There, leaving: Leaving, n_stay: str, mixed: str) -> tuple[There, str]:
    """The pieces that stay and, if any leave, one more in their place: their mean weighted by importance."""
    assert there.importance is not None
    importance = graph.pick(there.importance, leaving.leave)
    clamped = graph.add("Max", importance, graph.constant(np.finfo(np.float32).tiny))
    share = graph.add("Unsqueeze", graph.add("Div", clamped, graph.total(clamped, 0, keep=True)), graph.ints(0))  # (1, leaving piece)
    # No row where nobody leaves, so that nothing is added there.
    n_fused = graph.add("Min", graph.add("Shape", leaving.leave), graph.ints(1))
    share = graph.rows(share, graph.ints(0), n_fused)

    def joined(values: str) -> str:
        mean = graph.add("MatMul", share, graph.pick(values, leaving.leave))  # (0 or 1, width)
        return graph.add("Concat", graph.pick(values, leaving.stay), mean, axis=0)

    total = graph.rows(graph.total(importance, 0, keep=True), graph.ints(0), n_fused)
    summed = graph.add("Concat", graph.pick(there.importance, leaving.stay), total, axis=0)
    origin = None
    if there.origin is not None:
        nowhere = graph.add("Expand", graph.ints(0), n_fused)
        origin = graph.add("Concat", graph.pick(there.origin, leaving.stay), nowhere, axis=0)
    after = replace(there, hidden=joined(there.hidden), origin=origin, importance=summed, n_real=n_stay)
    return after, joined(mixed)
