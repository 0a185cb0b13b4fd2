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
SHARES = [0.9, 0.6, 0.3]
PRUNED: dict[str, dict[str, Any]] = {
    "none": {},
    "authors": {"pruning": "cascade"},
    "value": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "importance": "value"}},
    "few": {
        "pruning": "cascade",
        "pruning_options": {"schedule": "geometric", "final": 0.05, "final_heads": 0.3},
    },
    "restored": {"pruning": "learned"},
    "scorer": {
        "pruning": "learned",
        "pruning_options": {"shares": SHARES, "importance": "scorer", "restore": False},
    },
    "fused": {
        "pruning": "cascade",
        "pruning_options": {"schedule": SHARES, "fuse": True, "final_heads": 0.5},
    },
    "fused and restored": {
        "pruning": "learned",
        "pruning_options": {"shares": SHARES, "fuse": True, "importance": "value"},
    },
    "at once": {"pruning": "cascade", "pruning_options": {"schedule": [1.0, 0.4, 0.4]}},
}
KINDS: dict[str, dict[str, Any]] = {
    "bert": {"family": "bert"},
    "roberta": {"family": "roberta", "n_segments": 1, "first_position": 2},
    "xlm-roberta": {
        "family": "xlm-roberta",
        "n_segments": 1,
        "first_position": 2,
        "activation": "relu",
    },
    "distilbert": {"family": "distilbert", "n_segments": 0, "activation": "silu"},
    "electra": {"family": "electra", "embedding_width": 16, "has_projection": True},
    "albert": {
        "family": "albert",
        "embedding_width": 16,
        "has_projection": True,
        "n_layer_groups": 1,
        "group_size": 1,
        "activation": "gelu_new",
    },
    "mpnet": {"family": "mpnet", "n_segments": 0, "first_position": 2, "n_relative_buckets": 32},
    "deberta-v2": {
        "family": "deberta-v2",
        "n_segments": 0,
        "has_positions": False,
        "position_terms": ("c2p", "p2c"),
        "n_distance_buckets": 32,
        "farthest": 300,
        "distance_norm": "layer_norm",
        "shares_projections": True,
    },
    "modernbert": {
        "family": "modernbert",
        "n_segments": 0,
        "has_positions": False,
        "rotary_base": 160.0,
        "local_rotary_base": 10.0,
        "window": 12,
        "global_every": 2,
        "is_gated": True,
        "norm_first": True,
        "attention_bias": False,
        "feed_forward_bias": False,
        "norm_bias": False,
    },
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
