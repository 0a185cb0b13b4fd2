"""α-entmax in the file: Newton's steps on the reach, in a loop that ends when the last row is
settled (attention/simplex.py).

    w_k ∝ v_k^β,   v_k = [1 − gap_k / reach]₊,
    reach such that E = (reach / β) (Σ_k v_k^β)^{1/β} − 1 = 0

A step takes β E A^{1−1/β} / B off the reach, with A = Σ_k v_k^β and B = Σ_k v_k^{β−1}.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.simplex import MOST_ROUNDS
from litotes.exporting.graph import Graph, Value
from litotes.exporting.products import as_array

_EPSILON = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).tiny)


def write_entmax(graph: Graph, weighting: Entmax, affinity: str) -> str:
    """Weights of affinities, both (text, attention_head, query, key)."""
    # (attention_head, 1, 1)
    beta = 1 / (as_array(weighting.alpha).astype(np.float64) - 1)[:, None, None]
    best = graph.add("ReduceMax", affinity, graph.ints(-1), keepdims=1)
    behind = graph.minus(affinity, best)  # −gap (text, attention_head, query, key)
    zeros = graph.zeros_like(best)  # (text, attention_head, query, 1)
    reach = _write_loop(graph, behind, zeros, beta)
    powers, _, total = _write_powers(graph, behind, reach, beta)
    return graph.over(powers, total)


def _write_loop(graph: Graph, behind: str, zeros: str, beta: NDArray[np.float64]) -> str:
    """The reach of every row, (text, attention_head, query, 1)."""
    body = _loop_body(graph, behind, beta)
    start = graph.plus(zeros, graph.constant(beta.astype(np.float32)))
    excess = graph.plus(zeros, graph.number(1))
    rounds, enter = graph.constant(np.int64(MOST_ROUNDS)), graph.constant(np.bool_(True))
    reach, _ = graph.add_several("Loop", rounds, enter, start, excess, n_outputs=2, body=body)
    return reach


def _loop_body(graph: Graph, behind: str, beta: NDArray[np.float64]) -> Graph:
    """One round: (round, unsettled, reach, excess) → (unsettled, reach, excess)"""
    body = graph.body()
    shape: tuple[int | str, ...] = ("text", len(beta), "query", 1)
    body.inputs = [  # named after their layer: the loops of two layers must not share names
        Value(f"round_of_{behind}", np.int64, ()),
        Value(f"unsettled_of_{behind}", np.bool_, ()),
        Value(f"reach_of_{behind}", np.float32, shape),
        Value(f"over_of_{behind}", np.float32, shape),
    ]
    _, _, reach_before, excess_before = (value.name for value in body.inputs)
    reach, excess = _write_step(body, behind, reach_before, excess_before, beta)
    unsettled = body.add("Greater", body.add("ReduceMax", excess, keepdims=0), body.number(0))
    body.outputs = [
        Value(unsettled, np.bool_, ()),
        Value(reach, np.float32, shape),
        Value(excess, np.float32, shape),
    ]
    return body


def _write_step(
    body: Graph, behind: str, reach: str, remaining: str, beta: NDArray[np.float64]
) -> tuple[str, str]:
    """The next reach, and by how much E exceeds what may remain of it.

    A row that has settled stays where it is, however many rounds the others need.
    """
    excess, step = _write_newton(body, behind, reach, beta)
    moves = body.add("Greater", remaining, body.number(0))
    # One more step raises what is left to the power min(β, 2).
    close = 4 * _EPSILON ** (1 / np.minimum(beta, 2))
    now_remaining = body.minus(excess, body.constant(close.astype(np.float32)))
    next_reach = body.add("Where", moves, body.minus(reach, step), reach)
    return next_reach, body.add("Where", moves, now_remaining, remaining)


def _write_newton(
    body: Graph, behind: str, reach: str, beta: NDArray[np.float64]
) -> tuple[str, str]:
    """E, and the step β E A / (A^{1/β} B) that takes it to 0."""
    power, inverse = beta.astype(np.float32), (1 / beta).astype(np.float32)
    _, lower, total = _write_powers(body, behind, reach, beta)
    norm = body.add("Pow", total, body.constant(inverse))
    product = body.times(body.times(reach, norm), body.constant(inverse))
    excess = body.minus(product, body.number(1))
    scaled = body.times(body.times(excess, total), body.constant(power))
    return excess, body.over(scaled, body.times(norm, lower))


def _write_powers(
    graph: Graph, behind: str, reach: str, beta: NDArray[np.float64]
) -> tuple[str, str, str]:
    """v^β (text, attention_head, query, key), B and A, (text, attention_head, query, 1) each."""
    v = graph.add("Relu", graph.plus(graph.over(behind, reach), graph.number(1)))
    lower = _write_lower_power(graph, v, beta)
    powers = graph.times(lower, v)
    return powers, graph.sum(lower, -1, keep=True), graph.sum(powers, -1, keep=True)


def _write_lower_power(graph: Graph, v: str, beta: NDArray[np.float64]) -> str:
    """v^(β−1)"""
    if (beta == 2).all():
        return v  # α = 1.5 needs no logarithm
    if (beta == 1).all():
        return graph.add("Sign", v)
    logarithm = graph.add("Log", graph.add("Max", v, graph.number(_TINY)))
    exponent = graph.times(logarithm, graph.constant((beta - 1).astype(np.float32)))
    return graph.add("Exp", exponent)
