"""Pieces and attention heads that leave, in the file (attention/pruning.py, attention/survivors.py).

How many pieces stay after a layer follows from the text's length: a table per layer, looked up. Which ones, from their importance:

    importance  →  TopK  →  places in their old order  →  GatherND of what they were and what they gathered

Texts of equal length keep equally many pieces, so a group stays a group. Of two pieces alike the earlier one stays; ONNX's TopK has the
same rule. The first piece is given an importance of infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litotes.attention.cascade import Cascade
from litotes.attention.keep_all import KeepAll
from litotes.attention.learned import LOG_RANGE, Learned
from litotes.attention.pruning import Plan, Pruning
from litotes.encoders.spec import EncoderSpec
from litotes.errors import UserError
from litotes.runtime.block_graph import Attended
from litotes.runtime.graph import Graph
from litotes.runtime.products import as_array
from litotes.runtime.texts_graph import Texts


@dataclass(frozen=True)
class There:
    """What goes from layer to layer, by the names of the tensors.

    hidden: (text × piece, width). origin: the place each piece had in its text, (text, piece), 0 for a fused one; None where nobody asks.
    n_real: how many pieces a text has beside a fused one, which is its last, (1,). importance: (text, piece); None before anybody asked.
    heads: 1 for the attention heads still used, 0 for the others, (text, attention_head, 1, 1); None: all. head_importance:
    (text, attention_head). left: the states (text, piece, width) and origins (text, piece) of pieces that left, layer by layer.
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
    """Places of the pieces that stay, in order, and of those that leave, all (text, piece); the fused piece, if there is one, leaves."""

    stay: str
    leave_real: str
    leave: str


@dataclass(frozen=True)
class PruningGraph:
    """Writes what a pruning does after the attention of each layer."""

    texts: Texts
    pruning: Pruning
    plan: Plan
    spec: EncoderSpec

    def __post_init__(self) -> None:
        if type(self.pruning) not in (KeepAll, Cascade, Learned):
            raise UserError(f"The pruning {type(self.pruning).__name__} cannot be exported to ONNX yet: use the torch runtime.")

    def after(self, layer: int, there: There, seen: Attended) -> tuple[There, str]:
        """What is there after the attention of a layer, and what those pieces gathered, (text, piece, attention_head × head_width)."""
        texts, pruning, plan = self.texts, self.pruning, self.plan
        there = replace(there, importance=_importance(texts, pruning, layer, there, seen))
        if plan.weighs_heads(layer, pruning.n_attention_heads):
            there = _with_fewer_heads(texts, there, seen, plan, layer, pruning.n_attention_heads)
        if plan.pieces[layer] == (plan.pieces[layer - 1] if layer else 1.0):
            return there, seen.mixed
        n_stay = texts.graph.pick(self._counts(layer), texts.n_pieces)  # (1,)
        leaving = _choose(texts, there, n_stay, asked=pruning.fuse or pruning.restore)
        hidden = texts.apart(there.hidden, self.spec.width)  # (text, piece, width)
        if pruning.restore:
            assert there.origin is not None
            gone = (texts.pick(hidden, leaving.leave_real), texts.pick(there.origin, leaving.leave_real))
            there = replace(there, left=(*there.left, gone))
        write = _with_fused if pruning.fuse else _without
        there, hidden, mixed = write(texts, there, leaving, n_stay, hidden, seen.mixed)
        return replace(there, hidden=self._rows(hidden)), mixed

    def restored(self, there: There) -> str:
        """All pieces the texts came with, those gone in the state they left in. (text × piece, width)"""
        graph, texts = self.texts.graph, self.texts
        assert there.origin is not None
        here = (texts.apart(there.hidden, self.spec.width), there.origin)
        hidden, origin = (graph.between(values, graph.ints(0), there.n_real, axis=1) for values in here)
        states = graph.add("Concat", hidden, *(left[0] for left in there.left), axis=1)
        places = graph.add("Concat", origin, *(left[1] for left in there.left), axis=1)  # (text, piece)
        _, order = graph.add_several("TopK", places, texts.n_pieces, n_outputs=2, largest=0)  # who stands at 0, 1, 2, …
        return self._rows(texts.pick(states, order))

    def _rows(self, hidden: str) -> str:
        return self.texts.graph.reshape(hidden, -1, self.spec.width)

    def _counts(self, layer: int) -> str:
        """How many pieces stay of texts of 0, 1, 2, … pieces."""
        return self.texts.graph.ints(0, *self.plan.counts(layer, range(1, self.spec.max_pieces + 1)))


def _importance(texts: Texts, pruning: Pruning, layer: int, there: There, seen: Attended) -> str:
    """s_t = Σ_layers Σ_heads Σ_queries w[h, q, t], each weight by the length of its value where the pruning says so. (text, piece)"""
    graph = texts.graph
    n = graph.add("Shape", seen.weights, start=-1)  # (1,)
    if isinstance(pruning, Cascade | Learned) and pruning.by_value:
        total = _received_by_value(graph, seen)
    else:
        by_query = graph.add("Reshape", seen.weights, graph.add("Concat", texts.n, graph.ints(-1), n, axis=0))
        total = texts.total(by_query)  # over (text, attention_head × query, key)
    if there.importance is not None:
        total = graph.add("Add", total, there.importance)
    if isinstance(pruning, Learned) and pruning.scorers is not None:
        direction = as_array(pruning.scorers.weight)[layer] / np.float32(LOG_RANGE)
        score = graph.add("Tanh", graph.add("MatMul", there.hidden, graph.constant(direction)))  # (text × piece,)
        factor = graph.add("Exp", graph.add("Mul", score, graph.number(LOG_RANGE)))
        total = graph.add("Mul", total, texts.apart(factor))
    return total


def _received_by_value(graph: Graph, seen: Attended) -> str:
    """(text, piece)"""
    received = graph.total(seen.weights, 2)  # (text, attention_head, piece)
    value = graph.reshape(seen.value, 0, 0, seen.n_heads, -1)
    lengths = graph.add("ReduceL2", value, graph.ints(3), keepdims=0)  # (text, piece, attention_head)
    return graph.total(graph.add("Mul", graph.add("Transpose", received, perm=[0, 2, 1]), lengths), 2)


def _with_fewer_heads(texts: Texts, there: There, seen: Attended, plan: Plan, layer: int, n_heads: int) -> There:
    """The attention heads with the largest outputs, Σ_t Σ_d |E_{h,t,d}| over all layers so far, go on."""
    graph = texts.graph
    by_width = texts.total(graph.add("Abs", seen.mixed))  # (text, attention_head × head_width)
    size = graph.total(texts.shaped(by_width, n_heads, -1), 2)  # (text, attention_head)
    total = size if there.head_importance is None else graph.add("Add", size, there.head_importance)
    there = replace(there, head_importance=total)
    if plan.n_heads(layer, n_heads) == (plan.n_heads(layer - 1, n_heads) if layer else n_heads):
        return there
    if there.heads is not None:  # below every sum, so that no head comes back
        used = texts.shaped(there.heads, -1)
        total = graph.add("Add", graph.add("Mul", total, used), graph.add("Sub", used, graph.number(1)))
    _, places = graph.add_several("TopK", total, graph.ints(plan.n_heads(layer, n_heads)), n_outputs=2)
    nobody = graph.add("Mul", size, graph.number(0))
    one = graph.add("Expand", graph.number(1), graph.add("Shape", places))
    return replace(there, heads=texts.shaped(graph.add("ScatterElements", nobody, places, one, axis=1), n_heads, 1, 1))


def _choose(texts: Texts, there: There, n_stay: str, *, asked: bool) -> Leaving:
    """asked: whether anybody wants to know who leaves; all pieces are then put in order of importance."""
    graph = texts.graph
    assert there.importance is not None
    first = graph.constant(np.array([np.inf] + [0] * (texts.most_pieces - 1), dtype=np.float32))
    bonus = graph.between(first, graph.ints(0), there.n_real)  # (piece,)
    if not asked:
        _, best = graph.add_several("TopK", graph.add("Add", there.importance, bonus), n_stay, n_outputs=2, sorted=0)
        return Leaving(_in_order(graph, best, n_stay), "", "")
    score = graph.add("Add", graph.between(there.importance, graph.ints(0), there.n_real, axis=1), bonus)
    _, order = graph.add_several("TopK", score, there.n_real, n_outputs=2)
    stay = _in_order(graph, graph.between(order, graph.ints(0), n_stay, axis=1), n_stay)
    leave_real = graph.between(order, n_stay, there.n_real, axis=1)
    n_now = graph.add("Shape", there.importance, start=1)
    fused = graph.add("Range", *(graph.add("Squeeze", end) for end in (there.n_real, n_now)), graph.constant(np.int64(1)))
    of_each = graph.add("Expand", fused, graph.add("Concat", texts.n, graph.ints(1), axis=0))  # (text, 0 or 1)
    return Leaving(stay, leave_real, graph.add("Concat", leave_real, of_each, axis=1))


def _in_order(graph: Graph, places: str, n: str) -> str:
    return graph.add_several("TopK", places, n, n_outputs=2, largest=0)[0]


def _without(texts: Texts, there: There, leaving: Leaving, n_stay: str, hidden: str, mixed: str) -> tuple[There, str, str]:
    assert there.importance is not None
    origin = None if there.origin is None else texts.pick(there.origin, leaving.stay)
    after = replace(there, origin=origin, importance=texts.pick(there.importance, leaving.stay), n_real=n_stay)
    return after, texts.pick(hidden, leaving.stay), texts.pick(mixed, leaving.stay)


def _with_fused(texts: Texts, there: There, leaving: Leaving, n_stay: str, hidden: str, mixed: str) -> tuple[There, str, str]:
    """The pieces that stay and, if any leave, one more in their place: their mean weighted by importance."""
    graph = texts.graph
    assert there.importance is not None
    importance = texts.pick(there.importance, leaving.leave)  # (text, leaving piece)
    clamped = graph.add("Max", importance, graph.constant(np.finfo(np.float32).tiny))
    share = graph.add("Unsqueeze", graph.add("Div", clamped, graph.total(clamped, 1, keep=True)), graph.ints(1))
    # No row where nobody leaves, so that nothing is added there.
    n_fused = graph.add("Min", graph.add("Shape", leaving.leave, start=1), graph.ints(1))
    share = graph.between(share, graph.ints(0), n_fused, axis=1)  # (text, 0 or 1, leaving piece)

    def joined(values: str) -> str:
        mean = graph.add("MatMul", share, texts.pick(values, leaving.leave))  # (text, 0 or 1, width)
        return graph.add("Concat", texts.pick(values, leaving.stay), mean, axis=1)

    total = graph.between(graph.total(importance, 1, keep=True), graph.ints(0), n_fused, axis=1)
    summed = graph.add("Concat", texts.pick(there.importance, leaving.stay), total, axis=1)
    origin = None
    if there.origin is not None:
        nowhere = graph.add("Expand", graph.ints(0), graph.add("Concat", texts.n, n_fused, axis=0))
        origin = graph.add("Concat", texts.pick(there.origin, leaving.stay), nowhere, axis=1)
    return replace(there, origin=origin, importance=summed, n_real=n_stay), joined(hidden), joined(mixed)
