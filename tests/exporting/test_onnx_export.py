"""The exported file: what it holds, what it says about itself, what it answers, and what cannot be
exported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from tiny_exports import (
    GRADE,
    SARCASM,
    SENTIMENT,
    encoder_of,
    export_unmeasured,
    model_of,
    session_of,
    text_of,
)

from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.encoder import pretrained
from litotes.encoder.attention.weighting import Weighting
from litotes.encoder.operations import TORCH
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.graph import Graph, Value, model_bytes
from litotes.exporting.model_graph import build_onnx
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.folder import open_model
from litotes.model.heads import Head, read_texts
from litotes.prediction.onnx_file import IR_VERSION, MICROSOFT, OPSET
from litotes.prediction.onnx_runtime import OnnxSession, checked_export


def proto_of(**choices: Any) -> onnx.ModelProto:
    return onnx.load_from_string(build_onnx(model_of(encoder_of(**choices)), made_from={}))


def test_one_file_that_onnx_itself_finds_valid() -> None:
    """Its nodes are named after their part, so that a profile can say where time goes."""
    options = {"schedule": [0.5, 0.5, 0.5], "fuse": True}
    proto = proto_of(pruning="cascade", pruning_options=options)
    opsets = {(opset.domain, opset.version) for opset in proto.opset_import}
    assert (opsets, proto.ir_version) == ({("", OPSET), (MICROSOFT, 1)}, IR_VERSION)
    assert not any(tensor.external_data for tensor in proto.graph.initializer)
    onnx.checker.check_model(proto)
    names = ("projections", "attention", "feed_forward")
    layers = {f"layer.{layer}.{part}" for layer in range(3) for part in names}
    parts = {node.name.split("/")[0] for node in proto.graph.node}
    assert parts == layers | {"layer.0.selection", "embeddings", "head"}


def test_what_is_equal_is_written_once() -> None:
    graph = Graph()
    first, again = (graph.Relu("x") + 1.0 for _ in range(2))
    assert first.name == again.name
    assert len(graph.nodes) == 2
    assert graph.Relu("y").name != graph.Relu("x").name
    assert graph.Softmax("x", axis=0).name != graph.Softmax("x", axis=1).name
    with graph.branch() as inside:
        assert graph.Relu("x").name == inside.outer.Relu("x").name  # seen from outside
        hidden = graph.Relu("z")
    assert graph.Relu("z").name != hidden.name  # but not from inside


def test_layers_that_share_weights_share_them_in_the_file() -> None:
    whole = sum(np.prod(tensor.dims) for tensor in proto_of(family="albert").graph.initializer)
    shared = sum(
        np.prod(tensor.dims)
        for tensor in proto_of(family="albert", n_layer_groups=1).graph.initializer
    )
    block = sum(parameter.numel() for parameter in encoder_of().blocks[0].parameters())
    assert whole - shared == pytest.approx(2 * block, rel=0.01)


def test_a_folder_gains_a_file_that_belongs_to_it(
    tiny: pretrained.Pretrained, tmp_path: Path
) -> None:
    save_model(
        model_of(tiny.encoder, SARCASM, head="mean", tokenizer=tiny.tokenizer), tmp_path, card=""
    )
    assert export_unmeasured(tmp_path) == tmp_path / "model.onnx"
    with checked_export(open_model(tmp_path)) as (session, _):
        pass
    for name in ("model.safetensors", "tokenizer.json"):
        assert session.facts[f"sha256 of {name}"] == sha256_of(tmp_path / name)
    assert list(session.n_outputs) == ["sarcasm"]
    assert session.facts["precision"] == "float32"
    model = load_model(tmp_path)
    (pieces,) = model.tokenizer.encode(["the tea is great"])
    with torch.no_grad():
        expected = model.classifier(pack([pieces]))["sarcasm"][0].numpy()
    np.testing.assert_allclose(session.logits([pieces])["sarcasm"][0], expected, atol=1e-5)


def test_files_that_are_not_exports_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    with pytest.raises(UserError, match="There is no"):
        OnnxSession.load(file)
    graph = Graph()
    graph.inputs, graph.outputs = [Value("x", np.float32, (1,))], [Value("y", np.float32, (1,))]
    graph.add_as("y", "Relu", "x")
    for content in (
        b"",
        b"not a model",
        model_bytes(graph, {}),
        build_onnx(model_of(encoder_of()), made_from={})[:-1000],
    ):
        file.write_bytes(content)
        with pytest.raises(UserError, match="Export the model again"):
            OnnxSession.load(file)


def outputs_of(content: bytes, text: Pieces) -> dict[str, np.ndarray]:
    """Everything the file says of a text, as any other program would ask it."""
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feeds = {"pieces": np.array([text.ids]), "segments": np.array([text.segments])}
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.parametrize("threshold", [None, 0.2, 0.8])
def test_calibration_is_inside(threshold: float | None) -> None:
    calibration = {
        "sentiment": Calibration(temperature=2.5),
        "sarcasm": Calibration(0.7, threshold),
    }
    model = model_of(encoder_of(), calibration=calibration)
    for head in model.classifier.heads.values():
        torch.nn.init.normal_(head.output.weight)  # all kinds of answers
    content = build_onnx(model, made_from={})
    labels = set()
    for length in range(1, 30, 2):
        outputs = outputs_of(content, text_of(length))
        for task in ("sentiment", "sarcasm"):
            (label,), (probabilities,) = calibration[task].apply(outputs[f"{task}.logits"])
            assert outputs[f"{task}.label"] == label
            np.testing.assert_allclose(
                outputs[f"{task}.probabilities"][0], probabilities, atol=1e-12
            )
        labels.add(int(outputs["sarcasm.label"][0]))
    assert labels == {0, 1}  # else the thresholds were never asked


def test_a_number_has_no_probabilities() -> None:
    outputs = outputs_of(
        build_onnx(model_of(encoder_of(), SENTIMENT, GRADE), made_from={}), text_of(5)
    )
    assert {name: values.shape for name, values in outputs.items()} == {
        "sentiment.logits": (1, 3),
        "sentiment.probabilities": (1, 3),
        "sentiment.label": (1,),
        "grade.logits": (1, 1),
    }


def test_precisions_are_known_by_name() -> None:
    with pytest.raises(UserError, match="float32"):
        build_onnx(model_of(encoder_of()), precision="float23", made_from={})
    with pytest.raises(UserError, match="texts"):
        build_onnx(model_of(encoder_of()), precision="int8", made_from={})


class Sharper(Weighting):
    """A newcomer's own: softmax of twice the affinity, but of a half for negative ones."""

    def forward(self, affinity, live=None, heads=None, *, ops=TORCH):
        return ops.softmax(ops.where(affinity > 0.0, affinity * 2.0, affinity * 0.5), live)


class FirstAndMean(Head):
    """A newcomer's own."""

    def read(self, encoding, ops):
        return read_texts(encoding, ops)


def newcomer(weighting: Weighting) -> Model:
    model = model_of(encoder_of(pruning="cascade"))
    for block in model.classifier.encoder.blocks:
        block.attention.weighting = weighting
    torch.manual_seed(0)
    model.classifier.heads["sarcasm"] = FirstAndMean(64, 2, dropout=0.0)
    model.classifier.firsts_only = False
    return model


def test_what_is_written_with_operations_is_exported(tmp_path: Path) -> None:
    """Without another line."""
    model = newcomer(Sharper(4))
    text = text_of(30)
    wanted = model.classifier(pack([text]))["sarcasm"].detach().numpy()
    found = session_of(model, tmp_path).logits([text])["sarcasm"]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


class OfTorch(Weighting):
    def forward(self, affinity, live=None, heads=None, *, ops=TORCH):
        return torch.softmax(affinity, -1)


def test_what_is_written_with_torch_is_refused() -> None:
    with pytest.raises(UserError, match="with operations alone"):
        build_onnx(newcomer(OfTorch(4)), made_from={})


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"pip install 'litotes\[onnx\]'"):
        build_onnx(model_of(encoder_of()), made_from={})
