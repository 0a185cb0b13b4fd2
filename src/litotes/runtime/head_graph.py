"""Classification heads and calibration in the file: one writer per head, in WRITERS.

    read(products, head, hidden) → one vector for the text, (1, width)

The last product, to the logits, is always float32: it is tiny, and what it loses nobody makes good again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from litotes.calibration import Calibration
from litotes.errors import UserError
from litotes.flow import Task
from litotes.heads import Head, HeadPerTask
from litotes.heads.bilstm import BiLSTM
from litotes.heads.convolution import Convolution
from litotes.heads.crosstalk import CrossTalk
from litotes.heads.linear import Linear
from litotes.heads.mean import Mean
from litotes.heads.multitask import Multitask
from litotes.runtime.block_graph import first_row
from litotes.runtime.graph import Graph, Value
from litotes.runtime.products import Float32, Products, as_array


def logits_of(products: Products, heads: nn.Module, hidden: str) -> dict[str, str]:
    """The logits of every task, (1, class). hidden: (piece, width)"""
    if isinstance(heads, CrossTalk):
        return _crosstalk(products, heads, hidden)
    assert isinstance(heads, HeadPerTask)
    logits = {}
    for task, head in heads.items():
        if type(head) not in WRITERS:
            raise UserError(f"The head {type(head).__name__} cannot be exported to ONNX yet: use the torch runtime.")
        assert isinstance(head, Head)
        logits[task] = Float32(products.graph).one(WRITERS[type(head)](products, head, hidden), head.output)
    return logits


def _linear(products: Products, _: Linear, hidden: str) -> str:
    return first_row(products.graph, hidden)


def _mean(products: Products, _: Mean, hidden: str) -> str:
    return _mean_row(products.graph, hidden)


def _convolution(products: Products, head: Convolution, hidden: str) -> str:
    return _convolved(products, head.filters, hidden)


def _bilstm(products: Products, head: BiLSTM, hidden: str) -> str:
    """The first piece read forwards, which is one step, and the whole text read backwards."""
    graph, width = products.graph, head.lstm.hidden_size
    ways = []
    for suffix, direction, rows in (("", "forward", first_row(graph, hidden)), ("_reverse", "reverse", hidden)):
        inputs, states = (_gates(as_array(getattr(head.lstm, f"weight_{kind}_l0{suffix}"))) for kind in ("ih", "hh"))
        offsets = np.concatenate([_gates(as_array(getattr(head.lstm, f"bias_{kind}_l0{suffix}"))) for kind in ("ih", "hh")])
        steps = graph.add("Unsqueeze", rows, graph.ints(1))  # (piece, 1, width)
        constants = [graph.constant(values[None]) for values in (inputs, states, offsets)]
        last = graph.add_several("LSTM", steps, *constants, n_outputs=2, hidden_size=width, direction=direction)[1]
        ways.append(graph.reshape(last, 1, width))
    return graph.add("Concat", *ways, axis=1)


def _gates(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Gates in the order of ONNX: torch keeps them as input, forget, cell, output; ONNX as input, output, forget, cell."""
    entering, forget, cell, output = np.split(values, 4)
    return np.concatenate([entering, output, forget, cell])


def _crosstalk(products: Products, heads: CrossTalk, hidden: str) -> dict[str, str]:
    graph, exact = products.graph, Float32(products.graph)

    def relu(rows: str, layer: nn.Module) -> str:
        assert isinstance(layer, nn.Linear)
        return graph.add("Relu", exact.one(rows, layer))

    shared = _convolved(products, heads.filters, hidden)
    views = graph.add("Concat", *(relu(shared, project) for project in heads.projections.values()), axis=1)  # (1, task × width)
    logits = {}
    for task, output in heads.outputs.items():
        assert isinstance(output, nn.Linear)
        logits[task] = exact.one(relu(views, heads.fusions[task]), output)
    return logits


def _convolved(products: Products, filters: nn.Linear, hidden: str) -> str:
    """1/n Σ_t ReLU(W [h_{t-1}; h_t; h_{t+1}] + b); beyond the ends stand zeros. (1, width)"""
    graph = products.graph
    nothing = graph.constant(np.zeros((1, filters.in_features // 3), dtype=np.float32))
    before = graph.add("Concat", nothing, graph.rows(hidden, graph.ints(0), graph.ints(-1)), axis=0)
    after = graph.add("Concat", graph.rows(hidden, graph.ints(1), graph.ints(np.iinfo(np.int64).max)), nothing, axis=0)
    neighbours = graph.add("Concat", before, hidden, after, axis=1)  # (piece, 3 × width)
    return _mean_row(graph, graph.add("Relu", products.one(neighbours, filters)))


def _mean_row(graph: Graph, rows: str) -> str:
    return graph.add("ReduceMean", rows, graph.ints(0), keepdims=1)


WRITERS: dict[type[nn.Module], Callable[[Products, Any, str], str]] = {
    Linear: _linear,
    Mean: _mean,
    Convolution: _convolution,
    Multitask: _convolution,
    BiLSTM: _bilstm,
}


def answer(graph: Graph, task: Task, calibration: Calibration, logits: str) -> list[Value]:
    """The outputs of one task: `TASK.logits` (class,) and, where it has labels, `TASK.probabilities` (class,) and `TASK.label` ().

    In float64, so that a threshold decides as `Calibration.apply` does.
    """
    raw = graph.add_as(f"{task.name}.logits", "Reshape", logits, graph.ints(-1))
    values = [Value(raw, np.float32, (task.n_outputs,))]
    if task.is_regression:
        return values
    scaled = graph.add("Div", graph.cast(raw, np.float64), graph.constant(np.float64(calibration.temperature)))
    probabilities = graph.add_as(f"{task.name}.probabilities", "Softmax", scaled, axis=0)
    if calibration.threshold is None:
        label = graph.add_as(f"{task.name}.label", "ArgMax", raw, axis=0, keepdims=0)
    else:
        second = graph.pick(probabilities, graph.constant(np.int64(1)))
        reached = graph.add("GreaterOrEqual", second, graph.constant(np.float64(calibration.threshold)))
        label = graph.add_as(f"{task.name}.label", "Where", reached, graph.constant(np.int64(1)), graph.constant(np.int64(0)))
    return [*values, Value(probabilities, np.float64, (task.n_outputs,)), Value(label, np.int64, ())]
