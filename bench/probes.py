"""Products that show how fast a machine multiplies: every library that is installed, in several
shapes.

One large product is no limit. Weights that fit into a core's own cache are multiplied faster than
larger ones, and a product of its own on each core faster than one product that all cores share. So
each library multiplies in all SHAPES on all threads together, and ONNX Runtime, which runs our
files, also with products of their own for each thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.lines import Candidate
from litotes.core.machine import n_cores
from litotes.exporting.graph import Graph, Value, model_bytes

SHAPES = ((256, 384, 1536), (256, 1536, 384), (256, 768, 3072), (1024, 1024, 1024))
"""Rows, inputs and outputs: the two products of MiniLM's feed-forward, whose int8 weights fit into
a core's second cache, one of BERT's, and one far beyond that cache.
"""
N_IN_A_ROW = 4
"""Products of a thread before it waits for the others: starting it is no part of them."""

STEP = 0.05
"""Of rows and weights in int8."""

Shape = tuple[int, int, int]
Probes = dict[str, Candidate]


@contextmanager
def float32_probes(n_threads: int) -> Iterator[Probes]:
    """By library, shape and way."""
    probes: Probes = {}
    with ThreadPoolExecutor(n_threads) as pool:
        for shape in SHAPES:
            rows, weights = _numbers(shape)
            in_onnx = _model(_float32_graph(weights), shape)
            probes |= _onnxruntime_probes(in_onnx, rows, shape, pool, n_threads)
            multiply = partial(torch.mm, torch.from_numpy(rows), torch.from_numpy(weights))
            probes[_name("torch", shape)] = _probe(partial(_torch, multiply, n_threads), shape)
            if n_threads == n_cores():  # numpy cannot be told to use fewer
                probes[_name("numpy", shape)] = _probe(partial(np.matmul, rows, weights), shape)
            probes |= _openvino_probe(weights, rows, shape, n_threads)
        yield probes


@contextmanager
def int8_probes(n_threads: int) -> Iterator[Probes]:
    """The same in whole numbers; numpy has no such product."""
    probes: Probes = {}
    with ThreadPoolExecutor(n_threads) as pool:
        for shape in SHAPES:
            rows, weights = _numbers(shape)
            in_onnx = _model(_int8_graph(_steps(weights)), shape)
            probes |= _onnxruntime_probes(in_onnx, rows, shape, pool, n_threads)
            left, right = (torch.from_numpy(_steps(values)) for values in (rows, weights))
            multiply = partial(torch._int_mm, left, right)
            probes[_name("torch", shape)] = _probe(partial(_torch, multiply, n_threads), shape)
            probes |= _openvino_probe(_steps(weights), rows, shape, n_threads)
        yield probes


def _name(library: str, shape: Shape) -> str:
    return f"{library}, {' × '.join(map(str, shape))}"


def _probe(act: Callable[[], object], shape: Shape, n_products: int = 1) -> Candidate:
    rows, inputs, outputs = shape
    flops = 2 * rows * inputs * outputs * n_products
    return Candidate(lambda _: act(), against=(), flops=flops)


def _torch(multiply: Callable[[], object], n_threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        multiply()
    finally:
        torch.set_num_threads(before)


def _onnxruntime_probes(
    model: bytes, rows: NDArray[np.float32], shape: Shape, pool: ThreadPoolExecutor, n_threads: int
) -> Probes:
    """One product on all threads, and some for each thread."""
    probes = {_name("onnxruntime", shape): _probe(_session(model, rows, n_threads), shape)}
    if n_threads > 1:
        at_once = partial(_at_once, pool, _session(model, rows, 1), n_threads)
        n_products = N_IN_A_ROW * n_threads
        name = f"{_name('onnxruntime', shape)}, one a core"
        probes[name] = _probe(at_once, shape, n_products)
    return probes


def _session(model: bytes, rows: NDArray[np.float32], n_threads: int) -> Callable[[], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"rows": rows})


def _at_once(pool: ThreadPoolExecutor, multiply: Callable[[], object], n_threads: int) -> None:
    def several() -> None:
        for _ in range(N_IN_A_ROW):
            multiply()

    for done in [pool.submit(several) for _ in range(n_threads)]:
        done.result()


def _openvino_probe(
    weights: NDArray[Any], rows: NDArray[np.float32], shape: Shape, n_threads: int
) -> Probes:
    """Weights may be steps of int8; then rows are written in steps too."""
    if find_spec("openvino") is None:
        return {}
    import openvino

    options = {"NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": n_threads}
    compiled = openvino.Core().compile_model(_openvino_model(rows.shape, weights), "CPU", options)
    request = compiled.create_infer_request()
    return {_name("openvino", shape): _probe(lambda: request.infer([rows]), shape)}


def _openvino_model(shape: tuple[int, ...], weights: NDArray[Any]) -> Any:
    """shape: of the rows. weights: (input, output)"""
    import openvino
    from openvino import opset13 as operators

    rows = operators.parameter(shape, np.float32)
    left, right = rows, operators.constant(weights)
    if weights.dtype == np.int8:
        reach = [np.float32(-128 * STEP), np.float32(127 * STEP)]
        left = operators.fake_quantize(rows, *reach, *reach, 256)
        right = operators.multiply(operators.convert(right, np.float32), np.float32(STEP))
    product = operators.matmul(left, right, False, False)
    return openvino.Model([product], [rows], "product")


def _model(graph: Graph, shape: Shape) -> bytes:
    n_rows, n_inputs, n_outputs = shape
    graph.inputs = [Value("rows", np.float32, (n_rows, n_inputs))]
    graph.outputs = [Value("product", np.float32, (n_rows, n_outputs))]
    return model_bytes(graph, {})


def _float32_graph(weights: NDArray[np.float32]) -> Graph:
    graph = Graph()
    graph.add_as("product", "MatMul", "rows", graph.constant(weights))
    return graph


def _int8_graph(weights: NDArray[np.int8]) -> Graph:
    """Rows in steps of 0…255 and weights in whole numbers, as in our files (exporting/int8.py);
    quantising the rows is timed with it.
    """
    graph = Graph()
    scale, zero = np.float32(STEP), graph.constant(np.uint8(128))
    steps = graph.QuantizeLinear("rows", scale, zero)
    scales = (scale, np.float32(STEP), zero)
    graph.add_as("product", "MatMulIntegerToFloat", steps, graph.constant(weights), *scales)
    return graph


def _numbers(shape: Shape) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rows and weights. (row, input), (input, output)"""
    n_rows, n_inputs, n_outputs = shape
    draw = np.random.default_rng(0).standard_normal
    rows = draw((n_rows, n_inputs), dtype=np.float32)
    return rows, draw((n_inputs, n_outputs), dtype=np.float32)


def _steps(values: NDArray[np.float32]) -> NDArray[np.int8]:
    return np.clip(np.rint(values / STEP), -127, 127).astype(np.int8)
