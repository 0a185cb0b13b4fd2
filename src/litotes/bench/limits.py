"""How fast this machine multiplies at all: one large product in ONNX Runtime, in float32 and in
int8.

What an encoder reaches is given as a share of it. No encoder gets all of it: its products are
smaller, and softmax, norms and activations count no operations but take time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from litotes.bench.lines import Candidate, Line, time_lines
from litotes.core.progress import Watch
from litotes.exporting.graph import Graph, Value, model_bytes

SIZE = 1024
"""Rows, inputs and outputs of the product: far beyond the caches' first levels, far below a second.
"""
N_ROUNDS = 15
"""The best of them is the limit: a busy machine must not make it smaller than it is."""
FLOAT32, INT8 = "limit-float32", "limit-int8"
LIMIT_OF = {"float32": FLOAT32, "int8": INT8}


def limits(group: str, *, n_threads: int, watch: Watch) -> tuple[Line, ...]:
    """Two lines whose operations a second are the limit of all others."""
    made = {FLOAT32: _float32(), INT8: _int8()}
    candidates = {
        name: Candidate(_running(graph, n_threads), against=(), flops=2 * SIZE**3)
        for name, graph in made.items()
    }
    return time_lines(group, candidates, n_texts=1, n_rounds=N_ROUNDS, watch=watch)


def _float32() -> Graph:
    graph = Graph()
    product = graph.add_as("product", "Gemm", "rows", graph.constant(_numbers()))
    graph.outputs = [Value(product, np.float32, (SIZE, SIZE))]
    return graph


def _int8() -> Graph:
    """Rows in steps of 0…255 and weights in whole numbers, as in our files (runtime/int8.py);
    quantising the rows is timed with it.
    """
    graph = Graph()
    scale, zero = graph.number(0.05), graph.constant(np.uint8(128))
    steps = graph.add("QuantizeLinear", "rows", scale, zero)
    weights = graph.constant(np.rint(_numbers() * 20).astype(np.int8))
    product = graph.add_as(
        "product", "MatMulIntegerToFloat", steps, weights, scale, graph.number(0.05), zero
    )
    graph.outputs = [Value(product, np.float32, (SIZE, SIZE))]
    return graph


def _running(graph: Graph, n_threads: int) -> Callable[[object], object]:
    import onnxruntime

    graph.inputs = [Value("rows", np.float32, (SIZE, SIZE))]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
    session = onnxruntime.InferenceSession(
        model_bytes(graph, {}), options, providers=["CPUExecutionProvider"]
    )
    rows = _numbers()
    return lambda _: session.run(None, {"rows": rows})


def _numbers() -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((SIZE, SIZE), dtype=np.float32)
