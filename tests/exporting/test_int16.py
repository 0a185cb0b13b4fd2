"""Weights kept in 16 bits: half of the file, computed in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from tiny_exports import encoder_of, model_of, session_of, text_of

from litotes.core.errors import UserError
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.export import export
from litotes.exporting.model_graph import build_onnx
from litotes.model.checkpoint import Model
from litotes.model.runtime import compute_logits

TEXTS = [text_of(length) for length in (3, 9, 20)]


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
    # a float16 would be off by 30 times as much
    assert largest_difference(model_of(encoder_of(pruning=pruning)), tmp_path, TEXTS) < 1e-3


def test_only_matrices_and_the_table_are_narrow() -> None:
    content = build_onnx(model_of(encoder_of()), precision="int16", made_from={})
    proto = onnx.load_from_string(content)
    narrow = [one for one in proto.graph.initializer if one.data_type == onnx.TensorProto.INT16]
    assert {len(one.dims) for one in narrow} == {2}
    n_wide = len(build_onnx(model_of(encoder_of()), made_from={}))
    assert len(content) < 0.8 * n_wide  # a tiny model has many small constants


def test_a_weight_far_larger_than_others_coarsens_its_own_entry_alone(tmp_path: Path) -> None:
    model = model_of(encoder_of())
    with torch.no_grad():
        model.classifier.encoder.embeddings.piece.weight[5, 3] = 1e6
    assert largest_difference(model, tmp_path, [Pieces([4, 7, 6], [0, 0, 0], False)]) < 1e-3


def test_one_precision_is_asked_for() -> None:
    with pytest.raises(UserError, match="not both"):
        export("builtin", int8=True, int16=True)
