"""Affinities to weights, in the file: one writer per weighting, in WRITERS.

    write(graph, weighting, affinity) → weights, both (text, attention_head, query, key)

Texts that run together are equally long, so every key is live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from litotes.attention.block_top_k import BlockTopK
from litotes.attention.entmax import Entmax
from litotes.attention.softmax import Softmax
from litotes.attention.top_k import SelectiveSoftmax, TopK
from litotes.attention.weighting import Weighting
from litotes.core.errors import UserError
from litotes.export.entmax_graph import entmax
from litotes.export.graph import Graph


def weights_of(graph: Graph, weighting: Weighting, affinity: str) -> str:
    if type(weighting) not in WRITERS:
        raise UserError(
            f"The weighting {type(weighting).__name__} cannot be exported to ONNX yet: use the"
            " torch runtime, or write its operators in runtime/onnx/weighting_graph.py."
        )
    return WRITERS[type(weighting)](graph, weighting, affinity)


def _softmax(graph: Graph, _: Softmax, affinity: str) -> str:
    return graph.add("Softmax", affinity, axis=-1)


def _top_k(graph: Graph, weighting: TopK, affinity: str) -> str:
    """Softmax over the best affinities of each row, put back where they stood; ONNX, too, keeps the
    earlier one of two equals.
    """
    best, places = graph.add_several(
        "TopK", affinity, _n_kept(graph, weighting, _n_keys(graph, affinity)), n_outputs=2, axis=-1
    )
    nothing = graph.add("Mul", affinity, graph.number(0))
    return graph.add(
        "ScatterElements", nothing, places, graph.add("Softmax", best, axis=-1), axis=-1
    )


def _block_top_k(graph: Graph, weighting: BlockTopK, affinity: str) -> str:
    """Softmax over the keys whose block has the most weight in the query's block; the first query
    is a block by itself.
    """
    size = weighting.block
    n_queries, n_keys = graph.add("Shape", affinity, start=-2, end=-1), _n_keys(graph, affinity)
    of_queries = _membership(graph, n_queries, size, shift=size - 1)  # (query, query_block)
    of_keys = _membership(graph, n_keys, size, shift=0)  # (key, key_block)
    weights = graph.add("Softmax", affinity, axis=-1)
    by_queries = graph.add("MatMul", graph.add("Transpose", of_queries, perm=[1, 0]), weights)
    # (text, attention_head, query_block, key_block)
    mass = graph.add("MatMul", by_queries, of_keys)
    kept = _n_kept(graph, weighting, graph.add("Shape", of_keys, start=-1))
    _, places = graph.add_several("TopK", mass, kept, n_outputs=2, axis=-1)
    nothing = graph.add("Mul", mass, graph.number(0))
    one = graph.add("Expand", graph.number(1), graph.add("Shape", places))
    chosen = graph.add("ScatterElements", nothing, places, one, axis=-1)
    back = graph.add(
        "MatMul",
        graph.add("MatMul", of_queries, chosen),
        graph.add("Transpose", of_keys, perm=[1, 0]),
    )
    far = graph.add(
        "Mul", graph.add("Sub", graph.number(1), back), graph.constant(np.finfo(np.float32).min)
    )
    return graph.add("Mul", graph.add("Softmax", graph.add("Add", affinity, far), axis=-1), back)


def _n_keys(graph: Graph, affinity: str) -> str:
    return graph.add("Shape", affinity, start=-1)


def _membership(graph: Graph, n: str, size: int, *, shift: int) -> str:
    """Which block each of n neighbours is in, as ones and zeros. (neighbour, block)"""
    numbers = graph.add(
        "Range",
        graph.constant(np.int64(shift)),
        graph.add("Squeeze", graph.add("Add", n, graph.ints(shift))),
        _one(graph),
    )
    block = graph.add("Div", numbers, graph.ints(size))  # (neighbour,)
    n_blocks = graph.add("Add", graph.add("ReduceMax", block, keepdims=1), graph.ints(1))
    return graph.add(
        "OneHot", block, n_blocks, graph.constant(np.array([0, 1], dtype=np.float32)), axis=-1
    )


def _one(graph: Graph) -> str:
    return graph.constant(np.int64(1))


def _n_kept(graph: Graph, weighting: SelectiveSoftmax, n: str) -> str:
    """⌈(1 − sparsity) n⌉ in float64, as `SelectiveSoftmax.best` counts it. (1,)"""
    share = graph.add(
        "Mul", graph.cast(n, np.float64), graph.constant(np.float64(1 - weighting.sparsity))
    )
    return graph.cast(
        graph.add("Ceil", graph.add("Sub", share, graph.constant(np.float64(1e-9)))), np.int64
    )


WRITERS: dict[type[Weighting], Callable[[Graph, Any, str], str]] = {
    Softmax: _softmax,
    TopK: _top_k,
    BlockTopK: _block_top_k,
    Entmax: entmax,
}
