"""Torch and ONNX agree on every label and to 1e-4 in probability: every head, weighting, pruning
and family, at many lengths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_exports import encoder_of, model_of, session_of, text_of

from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.families import FAMILIES
from litotes.encoder.packing import pack
from litotes.encoder.reshaping import keep_heads, rebuild_encoder
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.heads import HEADS
from litotes.prediction.onnx_runtime import OnnxSession

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
    "bert": {},
    "roberta": {"n_segments": 1, "first_position": 2},
    "xlm-roberta": {"n_segments": 1, "first_position": 2, "activation": "relu"},
    "distilbert": {"n_segments": 0, "activation": "silu"},
    "electra": {"embedding_width": 16, "has_projection": True},
    "albert": {
        "embedding_width": 16,
        "has_projection": True,
        "n_layer_groups": 1,
        "group_size": 1,
        "activation": "gelu_new",
    },
    "mpnet": {"n_segments": 0, "first_position": 2, "n_relative_buckets": 32},
    "deberta-v2": {
        "n_segments": 0,
        "has_positions": False,
        "position_terms": ("c2p", "p2c"),
        "n_distance_buckets": 32,
        "farthest": 300,
        "distance_norm": "layer_norm",
        "shares_projections": True,
    },
    "modernbert": {
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
WEIGHTED: dict[str, list[dict[str, Any]]] = {
    "softmax": [{}],
    "entmax": [{"alpha": 1.5}, {"alpha": 2.0}, {"alpha": 1.25}, {"alpha": "learned"}],
    "top_k": [{"sparsity": 0.5}, {"sparsity": 0.95}],
    "block_top_k": [{"sparsity": 0.6, "block": 3}],
}
LENGTHS = (1, 2, 3, 40, 200, 512)


def test_every_table_is_covered() -> None:
    assert {choice.get("pruning", "none") for choice in PRUNED.values()} == set(PRUNINGS)
    assert set(KINDS) == set(FAMILIES)
    assert set(WEIGHTED) == set(WEIGHTINGS)


@torch.no_grad()
def assert_equal(model: Model, session: OnnxSession, texts: list[Pieces]) -> None:
    for text in texts:
        found = session.logits([text])
        for task, wanted in model.classifier(pack([text])).items():
            ours, theirs = (
                values.softmax(-1).numpy()
                for values in (torch.from_numpy(found[task][0]), wanted[0])
            )
            assert np.abs(ours - theirs).max() < 1e-4, (task, len(text.ids), ours, theirs)
            assert ours.argmax() == theirs.argmax()


def texts_of(*lengths: int) -> list[Pieces]:
    """Every second one is a pair."""
    return [text_of(length, pair=length % 2 == 0) for length in lengths]


HEADS_AND_PRUNINGS = sorted(
    {(head, pruning) for head in HEADS for pruning in ("none", "fused", "restored")}
    | {(head, pruning) for head in ("linear", "mean") for pruning in PRUNED}
)
"""A head reads rows and does not know who has left, so not every pair of the two has to be asked.
"""


@pytest.mark.slow
@pytest.mark.parametrize(("head", "pruning"), HEADS_AND_PRUNINGS)
def test_every_head_and_every_pruning(head: str, pruning: str, tmp_path: Path) -> None:
    model = model_of(encoder_of(**PRUNED[pruning]), head=head)
    assert_equal(model, session_of(model, tmp_path), texts_of(*LENGTHS))


@pytest.mark.slow
@pytest.mark.parametrize(("head", "pruning"), [("linear", "few"), ("mean", "fused and restored")])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family(family: str, head: str, pruning: str, tmp_path: Path) -> None:
    model = model_of(encoder_of(family=family, **KINDS[family], **PRUNED[pruning]), head=head)
    assert_equal(model, session_of(model, tmp_path), texts_of(1, 2, 40, 512))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weighting", "options"),
    [(name, options) for name, several in WEIGHTED.items() for options in several],
)
@pytest.mark.parametrize(("head", "pruning"), [("linear", "none"), ("mean", "value")])
def test_every_weighting(
    weighting: str, options: dict[str, Any], head: str, pruning: str, tmp_path: Path
) -> None:
    model = model_of(
        encoder_of(weighting=weighting, weighting_options=options, **PRUNED[pruning]), head=head
    )
    assert_equal(model, session_of(model, tmp_path), texts_of(1, 2, 9, 130))


@pytest.mark.slow
@pytest.mark.parametrize("head", ["linear", "mean"])
@pytest.mark.parametrize(
    ("family", "choices"),
    [
        ("deberta-v2", {"position_terms": ("c2p",), "shares_projections": False}),
        ("deberta-v2", {"position_terms": ("p2c",), "n_distance_buckets": 0, "farthest": 20}),
        ("deberta-v2", {"weighting": "block_top_k", "has_positions": True, "n_segments": 1}),
        ("modernbert", {"weighting": "entmax", "attention_bias": True, "norm_bias": True}),
        ("modernbert", {"weighting": "top_k", "window": 2000}),
        ("modernbert", {"weighting": "top_k", "weighting_options": {"sparsity": 0.6}}),
        ("modernbert", {"weighting": "block_top_k", "weighting_options": {"block": 3}}),
    ],
)
def test_choices_of_newer_families(
    family: str, choices: dict[str, Any], head: str, tmp_path: Path
) -> None:
    model = model_of(encoder_of(**KINDS[family] | {"family": family} | choices), head=head)
    assert_equal(model, session_of(model, tmp_path), texts_of(1, 2, 40, 512))


@pytest.mark.parametrize("head", ["linear", "mean"])
@pytest.mark.parametrize("family", ["bert", "mpnet", "deberta-v2", "modernbert"])
def test_heads_removed_for_good(head: str, family: str, tmp_path: Path) -> None:
    whole = encoder_of(family=family, **KINDS[family], **PRUNED["value"])
    model = model_of(keep_heads(whole, [[0, 2], [3], [1, 2, 3]]), head=head)
    assert_equal(model, session_of(model, tmp_path), texts_of(*LENGTHS))


@pytest.mark.parametrize("seed", range(2))
def test_pruning_at_lengths_drawn_at_random(seed: int, tmp_path: Path) -> None:
    model = model_of(encoder_of(seed, **PRUNED["fused and restored"]), head="mean")
    lengths = np.random.default_rng(seed).integers(1, 513, 8).tolist()
    assert_equal(model, session_of(model, tmp_path), texts_of(*lengths))


def test_of_two_pieces_alike_the_earlier_one_stays(tmp_path: Path) -> None:
    """Without positions equal pieces tie exactly, in both."""
    encoder = encoder_of(
        pruning="cascade", pruning_options={"schedule": [0.5, 0.5, 0.5]}, n_segments=0
    )
    torch.nn.init.zeros_(encoder.embeddings.position.weight)
    model = model_of(encoder, head="bilstm")
    session = session_of(model, tmp_path)
    ids = [1, 2, 3, 2, 3, 2, 3, 2, 3]
    assert_equal(model, session, [Pieces(ids, [0] * len(ids), False)])


def test_segments_beyond_the_table_count_as_its_last(tmp_path: Path) -> None:
    model = model_of(encoder_of())
    assert_equal(model, session_of(model, tmp_path), [Pieces([5, 6, 7, 8], [0, 1, 2, 5], False)])


LEARNED = {"pruning": "learned", "pruning_options": {"shares": [0.9, 0.7, 0.5, 0.4, 0.3, 0.25]}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "choices"), [("linear", {}), ("mean", LEARNED)], ids=["dense", "pruned"]
)
def test_minilm(head: str, choices: dict[str, Any], tmp_path: Path) -> None:
    loaded = pretrained.load("minilm")
    torch.manual_seed(0)
    model = model_of(rebuild_encoder(loaded.encoder, **choices), SENTIMENT, SARCASM, head=head)
    for task in model.classifier.heads.values():
        torch.nn.init.normal_(task.output.weight, std=0.5)
    sentences = (
        "Lovely.",
        "Another delay, how lovely of them to tell us all about it!",
        "The queue was long and the tea was cold; " * 20,
    )
    assert_equal(model, session_of(model, tmp_path), loaded.tokenizer.encode(sentences))
