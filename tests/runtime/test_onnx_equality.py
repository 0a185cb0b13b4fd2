"""Torch and ONNX agree on every label and to 1e-4 in probability: every head, weighting, pruning and family, at many lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from litotes.attention import PRUNINGS, WEIGHTINGS
from litotes.calibration import Calibration
from litotes.checkpoint import Model
from litotes.classifier import Classifier
from litotes.data.packing import pack
from litotes.data.pieces import Pieces, PieceTokenizer
from litotes.encoders.encoder import Encoder
from litotes.encoders.families import FAMILIES
from litotes.encoders.reshaping import compacted
from litotes.encoders.spec import EncoderSpec
from litotes.flow import Task
from litotes.heads import HEADS
from litotes.runtime.onnx_export import written
from litotes.runtime.onnx_session import OnnxSession

SIZES = {"n_vocabulary": 60, "width": 32, "n_layers": 4, "n_attention_heads": 4, "inner_width": 40, "n_positions": 514}
SPEC = EncoderSpec("bert", **SIZES, n_segments=2)
SHARES = [0.9, 0.7, 0.5, 0.3]
PRUNED: dict[str, dict[str, Any]] = {
    "none": {},
    "authors": {"pruning": "cascade"},
    "shares": {"pruning": "cascade", "pruning_options": {"schedule": SHARES}},
    "value": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "importance": "value"}},
    "few": {"pruning": "cascade", "pruning_options": {"schedule": "geometric", "final": 0.05, "final_heads": 0.3}},
    "restored": {"pruning": "learned"},
    "scorer": {"pruning": "learned", "pruning_options": {"shares": SHARES, "importance": "scorer", "restore": False}},
    "fused": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "fuse": True, "final_heads": 0.5}},
    "fused and restored": {"pruning": "learned", "pruning_options": {"shares": SHARES, "fuse": True, "importance": "value"}},
    "at once": {"pruning": "cascade", "pruning_options": {"schedule": [1.0, 0.4, 0.4, 0.4]}},
}
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"n_segments": 1, "first_position": 2},
    "xlm-roberta": {"n_segments": 1, "first_position": 2, "activation": "relu"},
    "distilbert": {"n_segments": 0, "activation": "silu"},
    "electra": {"embedding_width": 16, "has_projection": True},
    "albert": {"embedding_width": 16, "has_projection": True, "n_layer_groups": 2, "group_size": 1, "activation": "gelu_new"},
    "mpnet": {"n_segments": 0, "first_position": 2, "n_relative_buckets": 32},
}
SPARSE: dict[str, list[dict[str, Any]]] = {
    "softmax": [{}],
    "entmax": [{"alpha": 1.5}, {"alpha": 2.0}, {"alpha": 1.25}, {"alpha": "learned"}],
    "top_k": [{"sparsity": 0.5}, {"sparsity": 0.95}],
    "block_top_k": [{"sparsity": 0.6, "block": 3}],
}
LENGTHS = (1, 2, 3, 9, 40, 200, 512)
TASKS = (Task("sentiment", ("negative", "neutral", "positive")), Task("sarcasm", ("literal", "sarcastic")))


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


def model_of(encoder: Encoder, *, head: str = "linear", calibration: dict[str, Calibration] | None = None) -> Model:
    classifier = Classifier(encoder, TASKS, head=head, dropout=0.0).eval()
    return Model(classifier, PieceTokenizer.__new__(PieceTokenizer), "tiny", None, calibration or {})


def session_of(model: Model, tmp_path: Any, **options: Any) -> OnnxSession:
    file = tmp_path / "model.onnx"
    file.write_bytes(written(model, made_from={}, **options))
    return OnnxSession.load(file)


def text_of(length: int, *, pair: bool = False) -> Pieces:
    ids = np.random.default_rng(length).integers(0, 60, length).tolist()
    return Pieces(ids, [int(pair and place > length // 2) for place in range(length)], False)


@torch.no_grad()
def assert_equal(model: Model, session: OnnxSession, lengths: tuple[int, ...] = LENGTHS) -> None:
    for length in lengths:
        text = text_of(length, pair=length % 2 == 0)
        found = session.logits(text)
        for task, wanted in model.classifier(pack([text])).items():
            expected = wanted[0].softmax(-1).numpy()
            ours = torch.from_numpy(found[task]).softmax(-1).numpy()
            assert np.abs(ours - expected).max() < 1e-4, (task, length, ours, expected)
            assert ours.argmax() == expected.argmax()


@pytest.mark.parametrize("head", sorted(HEADS))
@pytest.mark.parametrize("pruning", sorted(PRUNED))
def test_every_head_with_every_pruning(head: str, pruning: str, tmp_path: Any) -> None:
    model = model_of(encoder_of(**PRUNED[pruning]), head=head)
    assert_equal(model, session_of(model, tmp_path))


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("pruning", ["none", "authors", "fused and restored"])
@pytest.mark.parametrize("head", ["linear", "mean"])
def test_every_family(family: str, pruning: str, head: str, tmp_path: Any) -> None:
    model = model_of(encoder_of(family=family, **KINDS[family], **PRUNED[pruning]), head=head)
    assert_equal(model, session_of(model, tmp_path))


@pytest.mark.parametrize(("weighting", "options"), [(name, options) for name, all_of in SPARSE.items() for options in all_of])
@pytest.mark.parametrize("head", ["linear", "mean"])
@pytest.mark.parametrize("pruning", ["none", "shares"])
def test_every_weighting(weighting: str, options: dict[str, Any], head: str, pruning: str, tmp_path: Any) -> None:
    model = model_of(encoder_of(weighting=weighting, weighting_options=options, **PRUNED[pruning]), head=head)
    assert_equal(model, session_of(model, tmp_path), (1, 2, 9, 40, 130))


@pytest.mark.parametrize("head", ["linear", "mean"])
@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_heads_taken_away_for_good(head: str, family: str, tmp_path: Any) -> None:
    whole = encoder_of(family=family, **KINDS[family], **PRUNED["value"])
    model = model_of(compacted(whole, [[0, 2], [3], [0, 1, 2, 3], [1, 2]]), head=head)
    assert_equal(model, session_of(model, tmp_path))


def test_every_table_is_covered() -> None:
    assert {choice.get("pruning", "none") for choice in PRUNED.values()} == set(PRUNINGS)
    assert set(KINDS) == set(FAMILIES)
    assert set(SPARSE) == set(WEIGHTINGS)
