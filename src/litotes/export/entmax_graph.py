"""α-entmax in the file: Newton's steps on the reach, in a loop that ends when the last row is
settled (attention/simplex.py).

    w_k ∝ v_k^β,   v_k = [1 − gap_k / reach]₊,   reach such that E = (reach / β) (Σ_k v_k^β)^{1/β} − 1 = 0

A step takes β E A^{1−1/β} / B off the reach, with A = Σ_k v_k^β and B = Σ_k v_k^{β−1}.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from litotes.attention.entmax import Entmax
from litotes.attention.simplex import MOST_ROUNDS
from litotes.export.graph import Graph, Value
from litotes.export.products import as_array

_EPSILON = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).tiny)


def entmax(graph: Graph, weighting: Entmax, affinity: str) -> str:
    """Weights of affinities, both (text, attention_head, query, key)."""
    # (attention_head, 1, 1)
    beta = 1 / (as_array(weighting.alpha).astype(np.float64) - 1)[:, None, None]
    best = graph.add("ReduceMax", affinity, graph.ints(-1), keepdims=1)
    behind = graph.add("Sub", affinity, best)  # −gap (text, attention_head, query, key)
    nothing = graph.add("Mul", best, graph.number(0))  # (text, attention_head, query, 1)
    reach = _settled(graph, behind, nothing, beta)
    powers, _, total = _powers(graph, behind, reach, beta)
    return graph.add("Div", powers, total)


def _settled(graph: Graph, behind: str, nothing: str, beta: NDArray[np.float64]) -> str:
    """The reach of every row, (text, attention_head, query, 1)."""
    body = graph.body()
    shape: tuple[int | str, ...] = ("text", len(beta), "query", 1)
    body.inputs = [  # named after their layer: the loops of two layers must not share names
        Value(f"round_of_{behind}", np.int64, ()),
        Value(f"unsettled_of_{behind}", np.bool_, ()),
        Value(f"reach_of_{behind}", np.float32, shape),
        Value(f"over_of_{behind}", np.float32, shape),
    ]
    reach, over = _round(body, behind, body.inputs[2].name, body.inputs[3].name, beta)
    unsettled = body.add("Greater", body.add("ReduceMax", over, keepdims=0), body.number(0))
    body.outputs = [
        Value(unsettled, np.bool_, ()),
        Value(reach, np.float32, shape),
        Value(over, np.float32, shape),
    ]
    start = (
        graph.add("Add", nothing, graph.constant(beta.astype(np.float32))),
        graph.add("Add", nothing, graph.number(1)),
    )
    rounds, at_all = graph.constant(np.int64(MOST_ROUNDS)), graph.constant(np.bool_(True))
    return graph.add_several("Loop", rounds, at_all, *start, n_outputs=2, body=body)[0]


def _round(
    body: Graph, behind: str, reach: str, over: str, beta: NDArray[np.float64]
) -> tuple[str, str]:
    """The next reach, and by how much it was over what may remain: a row that was not stays where
    it is, whatever others need.
    """

    def per_head(values: NDArray[np.float64]) -> str:
        return body.constant(values.astype(np.float32))

    _, lower, total = _powers(body, behind, reach, beta)
    norm = body.add("Pow", total, per_head(1 / beta))
    excess = body.add(
        "Sub", body.add("Mul", body.add("Mul", reach, norm), per_head(1 / beta)), body.number(1)
    )
    step = body.add(
        "Div",
        body.add("Mul", body.add("Mul", excess, total), per_head(beta)),
        body.add("Mul", norm, lower),
    )
    moves = body.add("Greater", over, body.number(0))
    # One more step raises what is left to the power min(β, 2).
    now_over = body.add("Sub", excess, per_head(4 * _EPSILON ** (1 / np.minimum(beta, 2))))
    return body.add("Where", moves, body.add("Sub", reach, step), reach), body.add(
        "Where", moves, now_over, over
    )


def _powers(
    graph: Graph, behind: str, reach: str, beta: NDArray[np.float64]
) -> tuple[str, str, str]:
    """v^β (text, attention_head, query, key), B and A, (text, attention_head, query, 1) each."""
    v = graph.add("Relu", graph.add("Add", graph.add("Div", behind, reach), graph.number(1)))
    if (beta == 2).all():
        less = v  # α = 1.5 needs no logarithm
    elif (beta == 1).all():
        less = graph.add("Sign", v)
    else:
        logarithm = graph.add("Log", graph.add("Max", v, graph.number(_TINY)))
        exponent = graph.add("Mul", logarithm, graph.constant((beta - 1).astype(np.float32)))
        less = graph.add("Exp", exponent)  # v^(β−1)
    powers = graph.add("Mul", less, v)
    return powers, graph.total(less, -1, keep=True), graph.total(powers, -1, keep=True)
