"""Affinities to weights, in the file: one writer per weighting, in WRITERS.

    write(graph, weighting, affinity) → weights, both (text, attention_head, query, key)

Texts that run together are equally long, so every key is live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.encoder.attention.block_top_k import BlockTopK
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.softmax import Softmax
from litotes.encoder.attention.top_k import SelectiveSoftmax, TopK
from litotes.encoder.attention.weighting import Weighting
from litotes.exporting.entmax_graph import write_entmax
from litotes.exporting.graph import Graph

_ZERO_AND_ONE = np.array([0, 1], dtype=np.float32)


def write_weights(graph: Graph, weighting: Weighting, affinity: str) -> str:
    if type(weighting) not in WRITERS:
        raise UserError(
            f"The weighting {type(weighting).__name__} cannot be exported to ONNX yet: use the"
            " torch runtime, or add a writer of its operators to exporting/weighting_graph.py."
        )
    return WRITERS[type(weighting)](graph, weighting, affinity)


def _write_softmax(graph: Graph, _: Softmax, affinity: str) -> str:
    return graph.add("Softmax", affinity, axis=-1)


def _write_top_k(graph: Graph, weighting: TopK, affinity: str) -> str:
    """Softmax over the best affinities of each row, put back where they stood; ONNX, too, keeps the
    earlier one of two equals.
    """
    n_kept = _n_kept(graph, weighting, graph.add("Shape", affinity, start=-1))
    best, places = graph.add_several("TopK", affinity, n_kept, n_outputs=2, axis=-1)
    zeros = graph.zeros_like(affinity)
    weights = graph.add("Softmax", best, axis=-1)
    return graph.add("ScatterElements", zeros, places, weights, axis=-1)


def _write_block_top_k(graph: Graph, weighting: BlockTopK, affinity: str) -> str:
    """Softmax over the keys whose block has the most weight in the query's block; the first query
    is a block by itself.
    """
    size = weighting.block
    n_queries = graph.add("Shape", affinity, start=-2, end=-1)
    n_keys = graph.add("Shape", affinity, start=-1)
    of_queries = _membership(graph, n_queries, size, shift=size - 1)  # (query, query_block)
    of_keys = _membership(graph, n_keys, size, shift=0)  # (key, key_block)
    weights = graph.add("Softmax", affinity, axis=-1)
    by_queries = graph.matmul(graph.transpose(of_queries, 1, 0), weights)
    # (text, attention_head, query_block, key_block)
    mass = graph.matmul(by_queries, of_keys)
    n_kept = _n_kept(graph, weighting, graph.add("Shape", of_keys, start=-1))
    kept_blocks = _mark_best(graph, mass, n_kept)
    by_query = graph.matmul(of_queries, kept_blocks)
    # (text, attention_head, query, key)
    kept = graph.matmul(by_query, graph.transpose(of_keys, 1, 0))
    return _softmax_over(graph, affinity, kept)


def _mark_best(graph: Graph, scores: str, n: str) -> str:
    """1 for the n best of each row, 0 for the others."""
    _, places = graph.add_several("TopK", scores, n, n_outputs=2, axis=-1)
    return graph.mark(places, like=scores)


def _softmax_over(graph: Graph, affinity: str, kept: str) -> str:
    """Softmax over the keys for which `kept` is 1; exactly 0 for the others."""
    dropped = graph.minus(graph.number(1), kept)
    far = graph.times(dropped, graph.constant(np.finfo(np.float32).min))
    weights = graph.add("Softmax", graph.plus(affinity, far), axis=-1)
    return graph.times(weights, kept)


def _membership(graph: Graph, n: str, size: int, *, shift: int) -> str:
    """Which block each of n neighbours is in, as ones and zeros. (neighbour, block)"""
    numbers = _range(graph, shift, n)
    block = graph.over(numbers, graph.ints(size))  # (neighbour,)
    last = graph.add("ReduceMax", block, keepdims=1)
    n_blocks = graph.plus(last, graph.ints(1))
    return graph.add("OneHot", block, n_blocks, graph.constant(_ZERO_AND_ONE), axis=-1)


def _range(graph: Graph, start: int, n: str) -> str:
    """The n whole numbers from `start` on."""
    first = graph.constant(np.int64(start))
    end = graph.add("Squeeze", graph.plus(n, graph.ints(start)))
    return graph.add("Range", first, end, graph.constant(np.int64(1)))


def _n_kept(graph: Graph, weighting: SelectiveSoftmax, n: str) -> str:
    """⌈(1 − sparsity) n⌉ in float64, as `SelectiveSoftmax.best` counts it. (1,)"""
    share = graph.constant(np.float64(1 - weighting.sparsity))
    raw = graph.times(graph.cast(n, np.float64), share)
    less = graph.minus(raw, graph.constant(np.float64(1e-9)))
    return graph.cast(graph.add("Ceil", less), np.int64)


WRITERS: dict[type[Weighting], Callable[[Graph, Any, str], str]] = {
    Softmax: _write_softmax,
    TopK: _write_top_k,
    BlockTopK: _write_block_top_k,
    Entmax: write_entmax,
}
