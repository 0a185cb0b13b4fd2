"""Weights in int8 and in 16 bits: what is rounded, that nothing is cut off, that answers stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from tiny_exports import encoder_of, model_of, session_of, text_of
from torch import nn

from litotes.data.corpus import SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.graph import Graph, Symbol, Value, model_bytes
from litotes.exporting.int8 import (
    HIGHEST_SUM,
    REACHES,
    Inputs,
    _rounding_errors,
    largest_sums,
    measure_inputs,
    quantise,
    round_weights,
)
from litotes.exporting.model_graph import build_onnx
from litotes.exporting.products import Int8
from litotes.model.checkpoint import Model
from litotes.model.runtime import compute_logits

TEXTS = [text_of(length) for length in (3, 9, 40, 70)]


def run(graph: Graph, **feeds: np.ndarray) -> list[np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        model_bytes(graph, {}), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def inputs_of(rows: np.ndarray) -> Inputs:
    return Inputs(rows.min(0), rows.max(0), rows.mean(0))


def product(layer: nn.Linear, rows: np.ndarray, known: Inputs | None = None) -> np.ndarray:
    graph = Graph()
    graph.inputs = [Value("rows", np.float32, ("row", layer.in_features))]
    known = {layer: known or inputs_of(rows)}
    (made,) = Int8(graph, known).apply(Symbol(graph, "rows"), layer, slice(None))
    graph.outputs = [Value(made.name, np.float32, ("row", layer.out_features))]
    return run(graph, rows=rows)[0]


def layer_of(weight: np.ndarray) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], len(weight))
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.zero_()
    return layer


@pytest.mark.parametrize("n_rows", [1, 2, 7, 64])
@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_is_cut_off_in_16_bits(n_rows: int, sign: int) -> None:
    """All inputs at the top of their range and all weights as large as they get: whole numbers, so
    every processor must be exact.
    """
    weight = np.full((8, 64), sign, dtype=np.float32)
    weight[::2, 1::2] = 0  # a large weight beside a small one gets all the steps
    rows = np.full((n_rows, 64), 255.0, dtype=np.float32)
    rows[:, -1] = 0  # so that the steps are 1 and zero is 0
    expected = rows @ weight.T
    np.testing.assert_allclose(product(layer_of(weight), rows), expected, rtol=0.01)


def test_neighbours_never_sum_to_more_than_16_bits_hold() -> None:
    generator = np.random.default_rng(0)
    graph = Graph()
    for width in (64, 33):
        for _ in range(20):
            layer = layer_of(generator.standard_normal((5, width)).astype(np.float32))
            nothing = inputs_of(np.zeros((1, width), dtype=np.float32))
            Int8(graph, {layer: nothing}).apply(Symbol(graph, "rows"), layer, slice(None))
    weights = [array.astype(int) for array in graph.constants.values() if array.dtype == np.int8]
    assert len(weights) == 40
    for weight in weights:  # (input, output)
        even = weight[: len(weight) // 2 * 2].reshape(-1, 2, 5)
        sums = np.maximum(even.clip(min=0).sum(1), -even.clip(max=0).sum(1))
        assert sums.max() <= HIGHEST_SUM + 1
        assert sums.max() * 255 < 2**15
        assert np.abs(weight).max() > 63  # finer than 7 bits each


@pytest.mark.parametrize("width", [64, 65, 300])
def test_weights_make_good_what_others_lost(width: int) -> None:
    """Inputs that vary together: the product's error shrinks, and 16 bits still hold every pair."""
    generator = np.random.default_rng(4)
    weight = generator.standard_normal((24, width)).astype(np.float32)
    rows = generator.standard_normal((2000, 8)) @ generator.standard_normal((8, width))
    rows += 0.1 * generator.standard_normal(rows.shape)
    covariance = np.cov(rows.T, bias=True)
    steps, scales = round_weights(weight, covariance)
    nearest, same_scales = quantise(weight, largest_sums(weight), HIGHEST_SUM)
    np.testing.assert_array_equal(scales, same_scales)
    error, plain = (
        ((rows @ (weight - found * scales).T) ** 2).mean() for found in (steps, nearest)
    )
    assert error < plain / 4
    assert largest_sums(steps.astype(int)).max() <= HIGHEST_SUM + 1
    # inputs that vary apart, or not at all
    for unknown in (None, np.zeros((width, width)), np.diag(np.arange(1.0, width + 1))):
        np.testing.assert_array_equal(round_weights(weight, unknown)[0], nearest)


def test_channels_that_stand_out_do_not_take_all_steps() -> None:
    generator = np.random.default_rng(1)
    weight = generator.standard_normal((16, 128)).astype(np.float32)
    weight[:, 7] /= 10  # as trained models have it
    layer = layer_of(weight)
    rows = generator.standard_normal((40, 128)).astype(np.float32)
    rows[3, 7] = 100.0
    exact = rows @ layer.weight.detach().numpy().T
    known = inputs_of(rows)
    alike = Inputs(
        *(np.full(128, value, dtype=np.float32) for value in (rows.min(), rows.max(), 0))
    )
    plain, helped = (np.abs(product(layer, rows, seen) - exact).mean() for seen in (alike, known))
    assert helped < plain / 4


def test_the_mean_error_of_rounding_is_in_the_offset() -> None:
    generator = np.random.default_rng(2)
    layer = layer_of(generator.standard_normal((64, 32)).astype(np.float32))
    # nearly all of it is its mean
    rows = (generator.standard_normal((200, 32)) * 0.05 + 3).astype(np.float32)
    exact = rows @ layer.weight.detach().numpy().T
    known = inputs_of(rows)
    without = replace(known, mean=np.zeros(32, dtype=np.float32))
    plain, helped = (
        np.abs((product(layer, rows, seen) - exact).mean(0)).mean() for seen in (without, known)
    )
    assert helped < plain / 3


def test_inputs_beyond_those_seen_are_cut_off_and_do_not_wrap() -> None:
    layer = layer_of(np.ones((4, 8), dtype=np.float32))
    seen = inputs_of(np.array([[-1.0] * 8, [2.0] * 8], dtype=np.float32))
    rows = np.array([[100.0] * 8, [-100.0] * 8, [0.0] * 8], dtype=np.float32)
    found = product(layer, rows, replace(seen, mean=np.zeros(8, dtype=np.float32)))
    np.testing.assert_allclose(found, np.repeat([[16.0], [-8.0], [0.0]], 4, axis=1), rtol=0.02)
    np.testing.assert_array_equal(found[2], 0)


def test_steps_reach_as_far_as_makes_the_error_smallest() -> None:
    """A row far beyond all others is cut off where that costs less than coarse steps for the rest,
    and not where all are alike.
    """
    generator = np.random.default_rng(3)
    layer = layer_of(generator.standard_normal((16, 64)).astype(np.float32))
    rows = generator.standard_normal((4000, 64)).astype(np.float32)
    rows[0] *= 2  # reaches twice as far, once in 4,000
    wide = _rounding_errors(layer, inputs_of(rows), torch.from_numpy(rows))
    assert REACHES[int(wide.argmin())] < 1
    even = np.repeat(np.array([[-1.0], [1.0]], dtype=np.float32), 64, axis=1)
    assert (
        REACHES[int(_rounding_errors(layer, inputs_of(even), torch.from_numpy(even)).argmin())] == 1
    )


def test_inputs_of_layers_are_measured_and_no_hook_is_left() -> None:
    classifier = model_of(encoder_of(), head="crosstalk").classifier
    encoder = classifier.encoder
    known = measure_inputs(classifier, TEXTS)
    assert {layer for layer in encoder.modules() if isinstance(layer, nn.Linear)} | {
        classifier.heads.filters
    } <= set(known)
    assert all(
        len(values) == layer.in_features
        for layer, inputs in known.items()
        for values in (inputs.smallest, inputs.largest)
    )
    assert not any(module._forward_pre_hooks for module in classifier.modules())
    with torch.no_grad():
        embedded = torch.cat([encoder.embeddings(pack([text])) for text in TEXTS])
    first = known[encoder.blocks[0].attention.qkv]
    np.testing.assert_allclose(first.smallest, embedded.amin(0), rtol=1e-6)
    np.testing.assert_allclose(first.largest, embedded.amax(0), rtol=1e-6)
    np.testing.assert_allclose(first.mean, embedded.mean(0), atol=1e-6)
    assert first.covariance is not None
    np.testing.assert_allclose(first.covariance, np.cov(embedded.T, bias=True), atol=1e-4)


@pytest.mark.slow
def test_minilm_is_a_quarter_of_its_size_and_says_the_same(tmp_path: Path) -> None:
    loaded = pretrained.load("minilm")
    torch.manual_seed(0)
    model = model_of(loaded.encoder, SENTIMENT)
    torch.nn.init.normal_(model.classifier.heads["sentiment"].output.weight, std=0.5)
    texts = loaded.tokenizer.encode(["Lovely.", "Another delay!", "The queue was long. " * 9])
    whole_size = len(build_onnx(model, made_from={}))
    small = session_of(model, tmp_path, precision="int8", texts=texts)
    assert (tmp_path / "model.onnx").stat().st_size < 0.27 * whole_size
    for text in texts:
        theirs = compute_logits(model, [text])["sentiment"][0]
        ours = torch.from_numpy(small.logits([text])["sentiment"][0])
        assert (ours.softmax(0) - theirs.softmax(0)).abs().max() < 0.05
        assert ours.argmax() == theirs.argmax()


SHORT = [text_of(length) for length in (3, 9, 20)]


def largest_difference(model: Model, folder: Path, texts: list[Pieces]) -> float:
    """Of any logit, between torch and the file of the same model."""
    session = session_of(model, folder, precision="int16")
    found = 0.0
    for text in texts:
        expected = compute_logits(model, [text])
        for task, logits in session.logits([text]).items():
            found = max(found, float(np.abs(logits - expected[task].numpy()).max()))
    return found


@pytest.mark.parametrize("pruning", ["none", "cascade"])
def test_it_computes_nearly_what_torch_does(pruning: str, tmp_path: Path) -> None:
    model = model_of(encoder_of(pruning=pruning))
    # a float16 would be off by 30 times as much
    assert largest_difference(model, tmp_path, SHORT) < 1e-3
    proto = onnx.load(tmp_path / "model.onnx")
    narrow = [one for one in proto.graph.initializer if one.data_type == onnx.TensorProto.INT16]
    assert {len(one.dims) for one in narrow} == {2}  # matrices and the table
    n_wide = len(build_onnx(model, made_from={}))
    assert proto.ByteSize() < 0.85 * n_wide  # a tiny model has many small constants


def test_a_weight_far_larger_than_others_coarsens_its_own_entry_alone(tmp_path: Path) -> None:
    model = model_of(encoder_of())
    with torch.no_grad():
        model.classifier.encoder.embeddings.piece.weight[5, 3] = 1e6
    assert largest_difference(model, tmp_path, [Pieces([4, 7, 6], [0, 0, 0], False)]) < 1e-3
