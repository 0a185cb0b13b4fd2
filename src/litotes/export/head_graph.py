"""Classification heads and calibration in the file: one writer per head, in WRITERS.

    read(products, texts, head, hidden) → one vector for every text, (text, width) or (text, 1,
    width)

What comes after that is float32: it is tiny, and what it loses nobody makes good again. Every text
is multiplied by itself there, for float32 products of several rows add in another order than those
of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.export.graph import Graph, Value
from litotes.export.products import Products, as_array
from litotes.export.texts_graph import Texts
from litotes.heads import Head, HeadPerTask
from litotes.heads.bilstm import BiLSTM
from litotes.heads.convolution import Convolution
from litotes.heads.crosstalk import CrossTalk
from litotes.heads.linear import Linear
from litotes.heads.mean import Mean
from litotes.heads.multitask import Multitask
from litotes.model.calibration import Calibration


def logits_of(products: Products, texts: Texts, heads: nn.Module, hidden: str) -> dict[str, str]:
    """The logits of every task, (text, class, 1). hidden: rows"""
    if isinstance(heads, CrossTalk):
        return _crosstalk(products, texts, heads, hidden)
    assert isinstance(heads, HeadPerTask)
    logits = {}
    for task, head in heads.items():
        if type(head) not in WRITERS:
            raise UserError(
                f"The head {type(head).__name__} cannot be exported to ONNX yet: use the torch"
                " runtime."
            )
        assert isinstance(head, Head)
        logits[task] = _applied(
            products.graph,
            head.output,
            _column(texts, WRITERS[type(head)](products, texts, head, hidden)),
        )
    return logits


def _applied(graph: Graph, layer: nn.Module, column: str) -> str:
    """W x + b in float32, every text by a product of its own.

    (text, input, 1) → (text, output, 1)
    """
    assert isinstance(layer, nn.Linear)
    weight, offset = (
        graph.constant(as_array(layer.weight)),
        graph.constant(as_array(layer.bias)[:, None]),
    )
    return graph.add("Add", graph.add("MatMul", weight, column), offset)


def _column(texts: Texts, vectors: str) -> str:
    """(text, width) or (text, 1, width) → (text, width, 1)"""
    return texts.shaped(vectors, -1, 1)


def _linear(products: Products, texts: Texts, head: Linear, hidden: str) -> str:
    return texts.first(products.apart(hidden, head.output.in_features))


def _mean(products: Products, texts: Texts, head: Mean, hidden: str) -> str:
    return _mean_piece(texts, products.apart(hidden, head.output.in_features))


def _convolution(products: Products, texts: Texts, head: Convolution, hidden: str) -> str:
    return _convolved(products, texts, head.filters, hidden)


def _bilstm(products: Products, _: Texts, head: BiLSTM, hidden: str) -> str:
    """The first piece read forwards, which is one step, and the whole text read backwards."""
    graph, width = products.graph, head.lstm.hidden_size
    # (piece, text, width)
    steps = graph.add("Transpose", products.apart(hidden, head.lstm.input_size), perm=[1, 0, 2])
    ways = []
    for suffix, direction, read in (
        ("", "forward", graph.between(steps, graph.ints(0), graph.ints(1))),
        ("_reverse", "reverse", steps),
    ):
        inputs, states = (
            _gates(as_array(getattr(head.lstm, f"weight_{kind}_l0{suffix}")))
            for kind in ("ih", "hh")
        )
        offsets = np.concatenate(
            [
                _gates(as_array(getattr(head.lstm, f"bias_{kind}_l0{suffix}")))
                for kind in ("ih", "hh")
            ]
        )
        constants = [graph.constant(values[None]) for values in (inputs, states, offsets)]
        last = graph.add_several(
            "LSTM", read, *constants, n_outputs=2, hidden_size=width, direction=direction
        )[1]
        ways.append(graph.reshape(last, -1, width))
    return graph.add("Concat", *ways, axis=1)


def _gates(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Gates in the order of ONNX: torch keeps them as input, forget, cell, output; ONNX as input,
    output, forget, cell.
    """
    entering, forget, cell, output = np.split(values, 4)
    return np.concatenate([entering, output, forget, cell])


def _crosstalk(products: Products, texts: Texts, heads: CrossTalk, hidden: str) -> dict[str, str]:
    graph = products.graph

    def relu(column: str, layer: nn.Module) -> str:
        return graph.add("Relu", _applied(graph, layer, column))

    shared = _column(texts, _convolved(products, texts, heads.filters, hidden))
    # (text, task × width, 1)
    views = graph.add(
        "Concat", *(relu(shared, project) for project in heads.projections.values()), axis=1
    )
    return {
        task: _applied(graph, output, relu(views, heads.fusions[task]))
        for task, output in heads.outputs.items()
    }


def _convolved(products: Products, texts: Texts, filters: nn.Linear, hidden: str) -> str:
    """1/n Σ_t ReLU(W [h_{t-1}; h_t; h_{t+1}] + b); beyond the ends stand zeros. (text, width)"""
    graph, width = products.graph, filters.in_features // 3
    pieces = products.apart(hidden, width)
    # (text, 1 + piece + 1, width)
    padded = graph.add("Pad", pieces, graph.ints(1, 1), "", graph.ints(1))
    before = graph.between(padded, graph.ints(0), graph.ints(-2), axis=1)
    after = graph.between(padded, graph.ints(2), graph.ints(np.iinfo(np.int64).max), axis=1)
    neighbours = graph.add("Concat", before, pieces, after, axis=2)  # (text, piece, 3 × width)
    features = graph.add("Relu", products.one(products.joined(neighbours, 3 * width), filters))
    return _mean_piece(texts, products.apart(features, filters.out_features))


def _mean_piece(texts: Texts, pieces: str) -> str:
    """(text, piece, width) → (text, width)"""
    graph = texts.graph
    n = graph.add("Shape", pieces, start=1, end=2)
    return graph.add("Div", texts.total(pieces, n), graph.cast(n, np.float32))


WRITERS: dict[type[nn.Module], Callable[[Products, Texts, Any, str], str]] = {
    Linear: _linear,
    Mean: _mean,
    Convolution: _convolution,
    Multitask: _convolution,
    BiLSTM: _bilstm,
}


def answer(graph: Graph, task: Task, calibration: Calibration, logits: str) -> list[Value]:
    """The outputs of one task: `TASK.logits` and, where it has labels, `TASK.probabilities`, (text,
    class) both, and `TASK.label` (text,).

    In float64, so that a threshold decides as `Calibration.apply` does. logits: (text, class, 1)
    """
    raw = graph.add_as(f"{task.name}.logits", "Squeeze", logits, graph.ints(2))
    values = [Value(raw, np.float32, ("text", task.n_outputs))]
    if task.is_regression:
        return values
    scaled = graph.add(
        "Div", graph.cast(raw, np.float64), graph.constant(np.float64(calibration.temperature))
    )
    probabilities = graph.add_as(f"{task.name}.probabilities", "Softmax", scaled, axis=1)
    if calibration.threshold is None:
        label = graph.add_as(f"{task.name}.label", "ArgMax", raw, axis=1, keepdims=0)
    else:
        second = graph.pick(probabilities, graph.constant(np.int64(1)), axis=1)
        reached = graph.add(
            "GreaterOrEqual", second, graph.constant(np.float64(calibration.threshold))
        )
        label = graph.add_as(
            f"{task.name}.label",
            "Where",
            reached,
            graph.constant(np.int64(1)),
            graph.constant(np.int64(0)),
        )
    return [
        *values,
        Value(probabilities, np.float64, ("text", task.n_outputs)),
        Value(label, np.int64, ("text",)),
    ]
