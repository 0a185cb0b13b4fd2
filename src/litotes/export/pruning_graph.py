"""Pieces and attention heads that leave, in the file (attention/pruning.py,
attention/survivors.py).

How many pieces stay after a layer follows from the text's length: a table per layer, looked up.
Which ones, from their importance:

    importance  →  TopK  →  places in their old order  →  GatherND of what they were and what they gathered

Texts of equal length keep equally many pieces, so a group stays a group. Of two pieces alike the
earlier one stays; ONNX's TopK has the same rule. The first piece is given an importance of
infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litotes.attention.cascade import Cascade
from litotes.attention.keep_all import KeepAll
from litotes.attention.learned import LOG_RANGE, Learned
from litotes.attention.pruning import Plan, Pruning
from litotes.core.errors import UserError
from litotes.encoders.spec import EncoderSpec
from litotes.export.block_graph import Attended
from litotes.export.graph import Graph
from litotes.export.products import Products, as_array
from litotes.export.texts_graph import Texts


@dataclass(frozen=True)
class There:
    """What goes from layer to layer, by the names of the tensors.

    hidden: rows. origin: the place each piece had in its text, (text, piece), 0 for a fused one;
    None where nobody asks.
    n_real: how many pieces a text has beside a fused one, which is its last, (1,). importance:
    (text, piece); None before anybody asked.
    heads: 1 for the attention heads still used, 0 for the others, (text, attention_head, 1, 1);
    None: all. head_importance: (text, attention_head). left: the states (text, piece, width) and
    origins (text, piece) of pieces that left, layer by layer.
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
    """Places of the pieces that stay, in order, and of those that leave, all (text, piece); the
    fused piece, if there is one, leaves.
    """

    stay: str
    leave_real: str
    leave: str


@dataclass(frozen=True)
class PruningGraph:
    """Writes what a pruning does after the attention of each layer."""

    products: Products
    texts: Texts
    pruning: Pruning
    plan: Plan
    spec: EncoderSpec

    def __post_init__(self) -> None:
        if type(self.pruning) not in (KeepAll, Cascade, Learned):
            raise UserError(
                f"The pruning {type(self.pruning).__name__} cannot be exported to ONNX yet: use the"
                " torch runtime."
            )

    def after(self, layer: int, there: There, seen: Attended) -> tuple[There, str]:
        """What is there after the attention of a layer, and what those pieces gathered, (text,
        piece, attention_head × head_width).
        """
        texts, pruning, plan = self.texts, self.pruning, self.plan
        hidden = self.products.apart(there.hidden, self.spec.width)  # (text, piece, width)
        n_now = texts.graph.add("Shape", hidden, start=1, end=2) if pruning.fuse else there.n_real
        there = replace(there, importance=self._importance(layer, there, seen, hidden, n_now))
        if plan.needs_head_importance(layer, pruning.n_attention_heads):
            there = self._with_fewer_heads(layer, there, seen, n_now)
        if plan.pieces[layer] == (plan.pieces[layer - 1] if layer else 1.0):
            return there, seen.mixed
        n_stay = texts.graph.pick(self._counts(layer), texts.n_pieces)  # (1,)
        leaving = (
            _choose(texts, there, n_stay, n_now)
            if pruning.fuse or pruning.restore
            else _choose_who_stays(texts, there, n_stay)
        )
        if pruning.restore:
            assert there.origin is not None
            gone = (
                texts.pick(hidden, leaving.leave_real),
                texts.pick(there.origin, leaving.leave_real),
            )
            there = replace(there, left=(*there.left, gone))
        write = _with_fused if pruning.fuse else _without
        there, hidden, mixed = write(texts, there, leaving, n_stay, hidden, seen.mixed)
        return replace(there, hidden=self.products.joined(hidden, self.spec.width)), mixed

    def restored(self, there: There) -> str:
        """All pieces the texts came with, those gone in the state they left in. Rows"""
        graph, texts = self.texts.graph, self.texts
        assert there.origin is not None
        here = (self.products.apart(there.hidden, self.spec.width), there.origin)
        hidden, origin = (
            graph.between(values, graph.ints(0), there.n_real, axis=1) for values in here
        )
        states = graph.add("Concat", hidden, *(left[0] for left in there.left), axis=1)
        # (text, piece)
        places = graph.add("Concat", origin, *(left[1] for left in there.left), axis=1)
        # who stands at 0, 1, 2, …
        _, order = graph.add_several("TopK", places, texts.n_pieces, n_outputs=2, largest=0)
        return self.products.joined(texts.pick(states, order), self.spec.width)

    def _importance(self, layer: int, there: There, seen: Attended, hidden: str, n: str) -> str:
        """s_t = Σ_layers Σ_heads Σ_queries w[h, q, t], each weight by the length of its value where
        the pruning says so. (text, piece)

        The first piece is given infinity once, which it keeps. hidden: (text, piece, width). n: how
        many pieces there are, (1,)
        """
        graph, texts, pruning = self.texts.graph, self.texts, self.pruning
        received = texts.total(seen.weights, n)  # (text, attention_head, piece)
        if isinstance(pruning, Cascade | Learned) and pruning.by_value:
            value = graph.reshape(seen.value, 0, 0, seen.n_heads, -1)
            # (text, piece, attention_head)
            lengths = graph.add("ReduceL2", value, graph.ints(3), keepdims=0)
            received = graph.add("Mul", received, graph.add("Transpose", lengths, perm=[0, 2, 1]))
        total = texts.total(received, graph.ints(seen.n_heads))  # (text, piece)
        before = there.importance
        if before is None:
            first = np.array([np.inf] + [0] * (texts.most_pieces - 1), dtype=np.float32)
            before = graph.between(graph.constant(first), graph.ints(0), n)  # (piece,)
        total = graph.add("Add", total, before)
        if isinstance(pruning, Learned) and pruning.scorers is not None:
            direction = as_array(pruning.scorers.weight)[layer] / np.float32(LOG_RANGE)
            # (text, piece)
            score = graph.add("Tanh", graph.add("MatMul", hidden, graph.constant(direction)))
            total = graph.add(
                "Mul", total, graph.add("Exp", graph.add("Mul", score, graph.number(LOG_RANGE)))
            )
        return total

    def _with_fewer_heads(self, layer: int, there: There, seen: Attended, n: str) -> There:
        """The attention heads with the largest outputs, Σ_t Σ_d |E_{h,t,d}| over all layers so far,
        go on. n: how many pieces, (1,)
        """
        graph, texts, plan, n_heads = (
            self.texts.graph,
            self.texts,
            self.plan,
            self.pruning.n_attention_heads,
        )
        # (text, attention_head × head_width)
        by_width = texts.total(graph.add("Abs", seen.mixed), n)
        size = graph.total(texts.shaped(by_width, n_heads, -1), 2)  # (text, attention_head)
        total = (
            size if there.head_importance is None else graph.add("Add", size, there.head_importance)
        )
        there = replace(there, head_importance=total)
        if plan.n_heads(layer, n_heads) == (plan.n_heads(layer - 1, n_heads) if layer else n_heads):
            return there
        if there.heads is not None:  # below every sum, so that no head comes back
            used = texts.shaped(there.heads, -1)
            total = graph.add(
                "Add", graph.add("Mul", total, used), graph.add("Sub", used, graph.number(1))
            )
        _, places = graph.add_several(
            "TopK", total, graph.ints(plan.n_heads(layer, n_heads)), n_outputs=2
        )
        nobody = graph.add("Mul", size, graph.number(0))
        one = graph.add("Expand", graph.number(1), graph.add("Shape", places))
        return replace(
            there,
            heads=texts.shaped(
                graph.add("ScatterElements", nobody, places, one, axis=1), n_heads, 1, 1
            ),
        )

    def _counts(self, layer: int) -> str:
        """How many pieces stay of texts of 0, 1, 2, … pieces."""
        return self.texts.graph.ints(
            0, *self.plan.counts(layer, range(1, self.spec.max_pieces + 1))
        )


def _choose_who_stays(texts: Texts, there: There, n_stay: str) -> Leaving:
    """Where nobody wants to know who leaves."""
    assert there.importance is not None
    _, best = texts.graph.add_several("TopK", there.importance, n_stay, n_outputs=2, sorted=0)
    return Leaving(_in_order(texts.graph, best, n_stay), "", "")


def _choose(texts: Texts, there: There, n_stay: str, n_now: str) -> Leaving:
    """All pieces but a fused one, put in order of importance."""
    graph = texts.graph
    assert there.importance is not None
    score = graph.between(there.importance, graph.ints(0), there.n_real, axis=1)
    _, order = graph.add_several("TopK", score, there.n_real, n_outputs=2)
    stay = _in_order(graph, graph.between(order, graph.ints(0), n_stay, axis=1), n_stay)
    leave_real = graph.between(order, n_stay, there.n_real, axis=1)
    fused = graph.add(
        "Range",
        *(graph.add("Squeeze", end) for end in (there.n_real, n_now)),
        graph.constant(np.int64(1)),
    )
    # (text, 0 or 1)
    of_each = graph.add("Expand", fused, graph.add("Concat", texts.n, graph.ints(1), axis=0))
    return Leaving(stay, leave_real, graph.add("Concat", leave_real, of_each, axis=1))


def _in_order(graph: Graph, places: str, n: str) -> str:
    return graph.add_several("TopK", places, n, n_outputs=2, largest=0)[0]


def _without(
    texts: Texts, there: There, leaving: Leaving, n_stay: str, hidden: str, mixed: str
) -> tuple[There, str, str]:
    assert there.importance is not None
    origin = None if there.origin is None else texts.pick(there.origin, leaving.stay)
    after = replace(
        there, origin=origin, importance=texts.pick(there.importance, leaving.stay), n_real=n_stay
    )
    return after, texts.pick(hidden, leaving.stay), texts.pick(mixed, leaving.stay)


def _with_fused(
    texts: Texts, there: There, leaving: Leaving, n_stay: str, hidden: str, mixed: str
) -> tuple[There, str, str]:
    """The pieces that stay and, if any leave, one more in their place: their mean weighted by
    importance.
    """
    graph = texts.graph
    assert there.importance is not None
    importance = texts.pick(there.importance, leaving.leave)  # (text, leaving piece)
    clamped = graph.add("Max", importance, graph.constant(np.finfo(np.float32).tiny))
    share = graph.add(
        "Unsqueeze", graph.add("Div", clamped, graph.total(clamped, 1, keep=True)), graph.ints(1)
    )
    # No row where nobody leaves, so that nothing is added there.
    n_fused = graph.add("Min", graph.add("Shape", leaving.leave, start=1), graph.ints(1))
    share = graph.between(share, graph.ints(0), n_fused, axis=1)  # (text, 0 or 1, leaving piece)

    def joined(values: str) -> str:
        # (text, 0 or 1, width)
        mean = graph.add("MatMul", share, texts.pick(values, leaving.leave))
        return graph.add("Concat", texts.pick(values, leaving.stay), mean, axis=1)

    total = graph.between(graph.total(importance, 1, keep=True), graph.ints(0), n_fused, axis=1)
    summed = graph.add("Concat", texts.pick(there.importance, leaving.stay), total, axis=1)
    origin = None
    if there.origin is not None:
        nowhere = graph.add("Expand", graph.ints(0), graph.add("Concat", texts.n, n_fused, axis=0))
        origin = graph.add("Concat", texts.pick(there.origin, leaving.stay), nowhere, axis=1)
    return (
        replace(there, origin=origin, importance=summed, n_real=n_stay),
        joined(hidden),
        joined(mixed),
    )
