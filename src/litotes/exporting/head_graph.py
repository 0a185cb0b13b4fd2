"""Classification heads and calibration in the file: one writer per head, in WRITERS.

    write(products, texts, head, hidden)  →  one vector for every text,
                                             (text, width) or (text, 1, width)

What follows is float32: it is tiny, and what rounding loses there is not made good later. Every
text has a product of its own there, because float32 products of several rows add in another order
than those of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder.torch_operations import lstm_weights
from litotes.exporting.graph import Graph, Value
from litotes.exporting.products import Products, as_array
from litotes.exporting.texts_graph import Texts
from litotes.model.calibration import Calibration, thresholds_of
from litotes.model.heads import (
    BiLSTM,
    Convolution,
    CrossTalk,
    Head,
    HeadPerTask,
    Linear,
    Mean,
    Multitask,
)


def write_heads(products: Products, texts: Texts, heads: nn.Module, hidden: str) -> dict[str, str]:
    """The logits of every task, (text, class, 1). hidden: rows"""
    if isinstance(heads, CrossTalk):
        return _write_crosstalk(products, texts, heads, hidden)
    if not isinstance(heads, HeadPerTask):
        raise _cannot_export(heads)
    logits = {}
    for task, head in heads.items():
        if type(head) not in WRITERS:
            raise _cannot_export(head)
        assert isinstance(head, Head)
        vectors = WRITERS[type(head)](products, texts, head, hidden)
        logits[task] = apply_linear(products.graph, head.output, column(texts, vectors))
    return logits


def _cannot_export(head: nn.Module) -> UserError:
    return UserError(
        f"The head {type(head).__name__} cannot be exported to ONNX yet: use the torch runtime, or"
        " add a writer of its operators to exporting/head_graph.py."
    )


def apply_linear(graph: Graph, layer: nn.Module, vectors: str) -> str:
    """W x + b in float32, every text by a product of its own.

    (text, input, 1) → (text, output, 1)
    """
    assert isinstance(layer, nn.Linear)
    weight = graph.constant(as_array(layer.weight))
    offset = graph.constant(as_array(layer.bias)[:, None])
    return graph.plus(graph.matmul(weight, vectors), offset)


def _apply_relu(graph: Graph, layer: nn.Module, vectors: str) -> str:
    return graph.add("Relu", apply_linear(graph, layer, vectors))


def column(texts: Texts, vectors: str) -> str:
    """(text, width) or (text, 1, width) → (text, width, 1)"""
    return texts.reshape(vectors, -1, 1)


def _write_linear(products: Products, texts: Texts, head: Linear, hidden: str) -> str:
    return texts.first_piece(products.to_texts(hidden, head.output.in_features))


def _write_mean(products: Products, texts: Texts, head: Mean, hidden: str) -> str:
    return mean_piece(texts, products.to_texts(hidden, head.output.in_features))


def _write_convolution(products: Products, texts: Texts, head: Convolution, hidden: str) -> str:
    return _convolve(products, texts, head.filters, hidden)


def _write_bilstm(products: Products, _: Texts, head: BiLSTM, hidden: str) -> str:
    """The first piece read forwards, which is one step, and the whole text read backwards."""
    graph = products.graph
    pieces = products.to_texts(hidden, head.lstm.input_size)
    steps = graph.transpose(pieces, 1, 0, 2)  # (piece, text, width)
    first = graph.first(steps, 1)
    forward = _last_state(graph, head.lstm, first, "forward")
    backward = _last_state(graph, head.lstm, steps, "reverse")
    return graph.concat(forward, backward, axis=1)


def _last_state(graph: Graph, lstm: nn.LSTM, steps: str, direction: str) -> str:
    """The state after all steps (piece, text, width) were read in one direction. (text, width)"""
    weights = _lstm_weights(lstm, "_reverse" if direction == "reverse" else "")
    _, last = graph.add_several(
        "LSTM",
        steps,
        *(graph.constant(values[None]) for values in weights),
        n_outputs=2,
        hidden_size=lstm.hidden_size,
        direction=direction,
    )
    return graph.reshape(last, -1, lstm.hidden_size)


def _lstm_weights(lstm: nn.LSTM, suffix: str) -> list[np.ndarray[Any, Any]]:
    """The weights of inputs and of states, and the offsets of both, one after the other."""
    weights = [_reorder_gates(as_array(values)) for values in lstm_weights(lstm, suffix)]
    return [*weights[:2], np.concatenate(weights[2:])]


def _reorder_gates(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Gates in the order of ONNX: torch has input, forget, cell, output; ONNX input, output,
    forget, cell.
    """
    entering, forget, cell, output = np.split(values, 4)
    return np.concatenate([entering, output, forget, cell])


def _write_crosstalk(
    products: Products, texts: Texts, heads: CrossTalk, hidden: str
) -> dict[str, str]:
    graph = products.graph
    shared = column(texts, _convolve(products, texts, heads.filters, hidden))
    views = [_apply_relu(graph, project, shared) for project in heads.projections.values()]
    all_views = graph.concat(*views, axis=1)  # (text, task × width, 1)
    logits = {}
    for task, output in heads.outputs.items():
        fused = _apply_relu(graph, heads.fusions[task], all_views)
        logits[task] = apply_linear(graph, output, fused)
    return logits


def _convolve(products: Products, texts: Texts, filters: nn.Linear, hidden: str) -> str:
    """1/n Σ_t ReLU(W [h_{t-1}; h_t; h_{t+1}] + b); beyond the ends stand zeros. (text, width)"""
    graph, width = products.graph, filters.in_features // 3
    pieces = products.to_texts(hidden, width)
    # (text, 1 + piece + 1, width)
    padded = graph.add("Pad", pieces, graph.ints(1, 1), "", graph.ints(1))
    before = graph.first(padded, -2, axis=1)
    after = graph.slice(padded, graph.ints(2), graph.ints(np.iinfo(np.int64).max), axis=1)
    neighbours = graph.concat(before, pieces, after, axis=2)  # (text, piece, 3 × width)
    rows = products.to_rows(neighbours, 3 * width)
    features = graph.add("Relu", products.apply(rows, filters))
    return mean_piece(texts, products.to_texts(features, filters.out_features))


def mean_piece(texts: Texts, pieces: str) -> str:
    """(text, piece, width) → (text, width)"""
    graph = texts.graph
    n = graph.add("Shape", pieces, start=1, end=2)
    return graph.over(texts.sum_pieces(pieces, n), graph.cast(n, np.float32))


WRITERS: dict[type[nn.Module], Callable[[Products, Texts, Any, str], str]] = {
    Linear: _write_linear,
    Mean: _write_mean,
    Convolution: _write_convolution,
    Multitask: _write_convolution,
    BiLSTM: _write_bilstm,
}


def write_answer(graph: Graph, task: Task, calibration: Calibration, logits: str) -> list[Value]:
    """The outputs of one task: `TASK.logits` and, if it has labels, `TASK.probabilities`, (text,
    class) both, and `TASK.label` (text,); where a text may have several labels `TASK.labels` (text,
    class), 1 for each that is given.

    In float64, so that a threshold decides as `Calibration.apply` does. logits: (text, class, 1)
    """
    raw = graph.add_as(f"{task.name}.logits", "Squeeze", logits, graph.ints(2))
    shape = ("text", task.n_outputs)
    outputs = [Value(raw, np.float32, shape)]
    if task.is_regression:
        return outputs
    precise = graph.cast(raw, np.float64)
    scaled = graph.over(precise, graph.constant(np.float64(calibration.temperature)))
    if task.multi_label:
        return [*outputs, *_write_several(graph, task, calibration, scaled)]
    probabilities = graph.add_as(f"{task.name}.probabilities", "Softmax", scaled, axis=1)
    label = f"{task.name}.label"
    if calibration.threshold is None:
        graph.add_as(label, "ArgMax", raw, axis=1, keepdims=0)
    else:
        _write_threshold(graph, label, probabilities, calibration.threshold)
    outputs += [Value(probabilities, np.float64, shape), Value(label, np.int64, ("text",))]
    return outputs


def _write_several(graph: Graph, task: Task, calibration: Calibration, scaled: str) -> list[Value]:
    """Every label by a threshold of its own. scaled: (text, class)"""
    shape = ("text", task.n_outputs)
    probabilities = graph.add_as(f"{task.name}.probabilities", "Sigmoid", scaled)
    least = graph.constant(thresholds_of(calibration, task.n_outputs)[None])
    given = graph.add("GreaterOrEqual", probabilities, least)
    labels = f"{task.name}.labels"
    graph.add_as(labels, "Where", given, *(graph.constant(np.int64(one)) for one in (1, 0)))
    return [Value(probabilities, np.float64, shape), Value(labels, np.int64, shape)]


def _write_threshold(graph: Graph, label: str, probabilities: str, threshold: float) -> None:
    """Label 1 where its probability reaches the threshold, else 0."""
    second = graph.gather(probabilities, graph.constant(np.int64(1)), axis=1)
    reached = graph.add("GreaterOrEqual", second, graph.constant(np.float64(threshold)))
    one, zero = graph.constant(np.int64(1)), graph.constant(np.int64(0))
    graph.add_as(label, "Where", reached, one, zero)
