"""Tiny random models to export, and texts to ask them about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.tokenizer import Pieces, PieceTokenizer
from litotes.exporting.model_graph import build_onnx, write_export
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model
from litotes.model.classifier import Classifier
from litotes.model.folder import open_model
from litotes.prediction.onnx_runtime import OnnxSession

N_PIECES = 60
SIZES = {
    "n_vocabulary": N_PIECES,
    "width": 32,
    "n_layers": 3,
    "n_attention_heads": 4,
    "inner_width": 40,
    "n_positions": 514,
}
SPEC = EncoderSpec("bert", **SIZES, n_segments=2)
SENTIMENT = Task("sentiment", ("negative", "neutral", "positive"))
SARCASM = Task("sarcasm", ("literal", "sarcastic"))
GRADE = Task("grade", ())


def encoder_of(seed: int = 0, **choices: Any) -> Encoder:
    """A random encoder whose attention heads differ enough to tell pieces apart."""
    torch.manual_seed(seed)
    encoder = Encoder(replace(SPEC, **choices))
    for name, parameter in encoder.named_parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
        elif not name.endswith("norm.weight"):
            torch.nn.init.normal_(parameter, std=0.1)
    return encoder


def model_of(
    encoder: Encoder,
    *tasks: Task,
    head: str = "linear",
    calibration: dict[str, Calibration] | None = None,
    tokenizer: Any = None,
) -> Model:
    """With two tasks unless said otherwise; without a tokenizer, for the texts are made of pieces
    already.
    """
    classifier = Classifier(encoder, tasks or (SENTIMENT, SARCASM), head=head, dropout=0.0).eval()
    return Model(
        classifier,
        tokenizer or PieceTokenizer.__new__(PieceTokenizer),
        "tiny",
        None,
        calibration or {},
    )


def session_of(model: Model, folder: Path, **options: Any) -> OnnxSession:
    file = folder / "model.onnx"
    file.write_bytes(build_onnx(model, made_from={}, **options))
    return OnnxSession.load(file)


def export_unmeasured(path: Path) -> Path:
    """Writes `model.onnx` into a model folder, in float32, without asking what it loses."""
    folder = open_model(path)
    content = build_onnx(load_model(folder), made_from=folder.stated_hashes)
    write_export(folder, content, "float32", {})
    return folder.path / "model.onnx"


def text_of(length: int, *, pair: bool = False) -> Pieces:
    ids = np.random.default_rng(length).integers(0, N_PIECES, length).tolist()
    return Pieces(ids, [int(pair and place > length // 2) for place in range(length)], False)
