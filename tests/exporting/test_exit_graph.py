"""Texts that leave early in the exported file: the same texts at the same layers as in torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_exits import with_exits
from tiny_exports import SARCASM, SENTIMENT, encoder_of, model_of, session_of, text_of

from litotes.encoder.attention import PRUNINGS
from litotes.encoder.tokenizer import Pieces
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.model.runtime import compute_logits, compute_outputs
from litotes.prediction.onnx_runtime import Workers

SHARES = [0.8, 0.6, 0.4]
SETTINGS: dict[str, dict[str, Any]] = {
    "heads": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "final_heads": 0.5}},
    "both": {"pruning": "learned", "pruning_options": {"shares": SHARES, "fuse": True}},
    "restored": {
        "pruning": "learned",
        "pruning_options": {"shares": SHARES, "restore": True, "fuse": True},
        "head": "mean",
    },
    "entmax": {"weighting": "entmax"},
    "modernbert": {
        "family": "modernbert",
        "n_segments": 0,
        "has_positions": False,
        "rotary_base": 100.0,
        "local_rotary_base": 20.0,
        "window": 6,
        "global_every": 2,
        "norm_first": True,
        "is_gated": True,
        "attention_bias": False,
        "pruning": "cascade",
        "pruning_options": {"schedule": SHARES},
    },
    **{name: {"pruning": name} for name in PRUNINGS},
}
CALIBRATION = {"sarcasm": Calibration(1.5, 0.6, 100)}
LENGTHS = (7, 12, 30)
N_ALIKE = 6
THRESHOLD = 0.55


def exiting_model(threshold: float = THRESHOLD, head: str = "linear", **choices: Any) -> Model:
    encoder = encoder_of(**choices)
    made = model_of(encoder, SENTIMENT, SARCASM, head=head, calibration=CALIBRATION)
    return with_exits(made, (1, 2), threshold=threshold)


def groups() -> list[list[Pieces]]:
    """Texts of equal length, several of each."""
    drawn = np.random.default_rng(0)
    made = []
    for length in LENGTHS:
        texts = [drawn.integers(0, 60, length).tolist() for _ in range(N_ALIKE)]
        made.append([Pieces(text, [0] * length, False) for text in texts])
    return made


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_torch_and_the_file_agree_on_layer_and_logits(setting: str, tmp_path: Path) -> None:
    # states that are not normed make large margins
    threshold = 0.95 if setting == "modernbert" else THRESHOLD
    model = exiting_model(threshold, **SETTINGS[setting])
    session = session_of(model, tmp_path)
    layers = set()
    for group in groups():
        expected, found = compute_outputs(model, group), session.compute(group)
        assert expected.layers is not None
        layers |= set(expected.layers.tolist())
        np.testing.assert_array_equal(found.layers, expected.layers)
        for task, logits in expected.logits.items():
            np.testing.assert_allclose(found.logits[task], logits, atol=1e-4)
    assert layers == {1, 2, 3}


def test_a_text_in_the_file_is_answered_as_if_it_were_alone(tmp_path: Path) -> None:
    model = exiting_model(**SETTINGS["both"])
    session = session_of(
        model, tmp_path, precision="int8", texts=[text_of(n) for n in range(2, 40)]
    )
    group = groups()[1]
    together = session.compute(group)
    assert together.layers is not None
    assert len(set(together.layers.tolist())) > 1
    for place, text in enumerate(group):
        alone = session.compute([text])
        assert alone.layers is not None
        assert alone.layers.tolist() == [together.layers[place]]
        for task, logits in alone.logits.items():
            np.testing.assert_allclose(logits[0], together.logits[task][place], atol=1e-5)


def test_workers_keep_the_layers_in_order(tmp_path: Path) -> None:
    model = exiting_model()
    texts = [text for alike in zip(*groups(), strict=True) for text in alike]
    found = Workers(session_of(model, tmp_path), 2).compute(texts)
    np.testing.assert_array_equal(found.layers, compute_outputs(model, texts).layers)


@pytest.mark.parametrize(("threshold", "layer"), [(1.0, 3), (1e-9, 1)])
def test_all_stay_or_all_leave(threshold: float, layer: int, tmp_path: Path) -> None:
    model = exiting_model(threshold)
    found = session_of(model, tmp_path).compute(groups()[0])
    assert found.layers is not None
    assert set(found.layers.tolist()) == {layer}
    whole = compute_logits(model, groups()[0])
    for task, logits in whole.items():
        is_same = np.allclose(found.logits[task], logits.numpy(), atol=1e-4)
        assert is_same == (layer == 3)
