"""Texts that leave early: each as if it were alone, gone from the packed tensor, with every
pruning.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from made_exits import exits_of

from litotes.core.registry import options_of
from litotes.core.values import Task
from litotes.encoder.attention import PRUNINGS
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import Encoding, GoOn
from litotes.model.calibration import Calibration
from litotes.model.classifier import Classifier

TASKS = (Task("mood", ("low", "even", "high")), Task("sarcasm", ("literal", "sarcastic")))
CALIBRATION = {"sarcasm": Calibration(2.0, 0.4, 100)}
SPEC = {
    "n_vocabulary": 60,
    "width": 32,
    "n_layers": 4,
    "n_attention_heads": 4,
    "inner_width": 40,
    "n_positions": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
SHARES = [0.9, 0.7, 0.5, 0.3]
SETTINGS: dict[str, dict[str, Any]] = {
    "heads": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "final_heads": 0.3}},
    "fused": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "fuse": True}},
    "both": {
        "pruning": "learned",
        "pruning_options": {"shares": SHARES, "fuse": True, "restore": True},
    },
    **{name: {"pruning": name} for name in PRUNINGS},
}
LENGTHS = (1, 2, 9, 40, 17, 3, 9, 24)
LAYERS = (1, 3)
THRESHOLD = 0.55


def classifier_of(head: str = "mean", **choices: Any) -> Classifier:
    torch.manual_seed(0)
    encoder = Encoder(EncoderSpec("bert", **SPEC, **choices))
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return Classifier(encoder, TASKS, head=head, dropout=0.0).double().eval()


def texts_of(lengths: tuple[int, ...] = LENGTHS) -> list[Pieces]:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randint(0, 60, (length,), generator=generator).tolist() for length in lengths]
    return [Pieces(text, [0] * len(text), False) for text in drawn]


@pytest.fixture(params=sorted(SETTINGS))
def setting(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SETTINGS[request.param]


def test_the_settings_know_the_options_of_every_pruning() -> None:
    assert {"restore", "fuse"} <= set(options_of(PRUNINGS["learned"]))


@pytest.mark.parametrize("head", ["linear", "mean"])
def test_a_text_is_answered_as_if_it_were_alone(setting: dict[str, Any], head: str) -> None:
    classifier, texts = classifier_of(head, **setting), texts_of()
    exits = exits_of(classifier, LAYERS, threshold=THRESHOLD)
    logits, layers = exits.answer(classifier, pack(texts), CALIBRATION)
    assert len(set(layers.tolist())) > 1  # some leave and some stay, or nothing is shown here
    for place, text in enumerate(texts):
        alone, layer = exits.answer(classifier, pack([text]), CALIBRATION)
        assert layer.tolist() == [layers[place].item()]
        for task, own in alone.items():
            torch.testing.assert_close(own[0], logits[task][place], rtol=0, atol=1e-9)


def test_texts_that_stay_are_answered_by_the_whole_model(setting: dict[str, Any]) -> None:
    classifier, batch = classifier_of(**setting), pack(texts_of())
    exits = exits_of(classifier, LAYERS, threshold=THRESHOLD)
    logits, layers = exits.answer(classifier, batch, CALIBRATION)
    went_on, whole = layers == 4, classifier(batch)
    assert went_on.any()
    for task, own in whole.items():
        torch.testing.assert_close(logits[task][went_on], own[went_on], rtol=0, atol=1e-9)
        assert not torch.allclose(logits[task][~went_on], own[~went_on])


def test_a_threshold_that_nothing_reaches_changes_nothing(setting: dict[str, Any]) -> None:
    classifier, batch = classifier_of(**setting), pack(texts_of())
    exits = exits_of(classifier, LAYERS, threshold=1.0)
    logits, layers = exits.answer(classifier, batch, CALIBRATION)
    assert set(layers.tolist()) == {4}
    for task, own in classifier(batch).items():
        torch.testing.assert_close(logits[task], own, rtol=0, atol=0)


def test_all_may_leave_at_once() -> None:
    classifier, batch = classifier_of(), pack(texts_of())
    exits = exits_of(classifier, LAYERS, threshold=1e-9)
    logits, layers = exits.answer(classifier, batch, CALIBRATION)
    assert set(layers.tolist()) == {1}
    hidden = classifier.encoder.walk(classifier.encoder.embeddings(batch), batch.layout, stop=1)
    for task, own in exits.heads(1, hidden).items():
        torch.testing.assert_close(logits[task], own)


def test_a_text_leaves_when_every_task_is_sure() -> None:
    classifier, batch = classifier_of(), pack(texts_of())
    exits = exits_of(classifier, LAYERS, threshold=THRESHOLD)
    hidden = classifier.encoder.walk(classifier.encoder.embeddings(batch), batch.layout, stop=1)
    logits = {task: own.detach().numpy() for task, own in exits.heads(1, hidden).items()}
    mood = np.sort(logits["mood"], axis=1)
    margins = {"mood": mood[:, -1] - mood[:, -2]}
    # P(sarcastic) ≥ 0.4 at a temperature of 2
    lead = logits["sarcasm"][:, 1] - logits["sarcasm"][:, 0]
    margins["sarcasm"] = np.abs(lead - 2 * np.log(0.4 / 0.6))
    sure = [1 / (1 + np.exp(1 - own)) >= THRESHOLD for own in margins.values()]
    assert (sure[0] != sure[1]).any()
    _, layers = exits.answer(classifier, batch, CALIBRATION)
    np.testing.assert_array_equal(layers.numpy() == 1, sure[0] & sure[1])


def test_texts_that_leave_are_gone_from_the_tensor(setting: dict[str, Any]) -> None:
    """What an exit sees of the others has only the pieces of texts still there."""
    classifier, batch = classifier_of(**setting), pack(texts_of())
    seen: dict[int, Encoding] = {}

    def leave(layer: int, encoding: Encoding, go_on: GoOn) -> Encoding:
        seen[layer] = encoding
        whole: Encoding = go_on(torch.arange(len(LENGTHS)) % 2 == 0 if layer == 2 else None)
        return whole

    encoded = classifier.encoder(batch, exits={n: partial(leave, n) for n in (2, 3)})
    kept: Batch = pack(texts_of()[::2])
    expected: dict[int, Encoding] = {}

    def watch(encoding: Encoding, go_on: GoOn) -> Encoding:
        expected[3] = encoding
        whole: Encoding = go_on(None)
        return whole

    others = classifier.encoder(kept, exits={3: watch})
    assert seen[2].layout.n_texts == len(LENGTHS)
    for found, own in ((seen[3], expected[3]), (encoded, others)):
        assert found.layout.lengths == own.layout.lengths
        assert torch.equal(found.origin, own.origin)
        torch.testing.assert_close(found.hidden, own.hidden, rtol=0, atol=1e-9)
