"""A service with a model of words: its marks are part of every explanation."""

from __future__ import annotations

from typing import Any

import torch

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.pretrained import Pretrained
from litotes.model.checkpoint import SavedWordModel
from litotes.model.classifier import WordModel
from litotes.prediction.predictor import Predictor
from litotes.service import create_app
from litotes.service.answers import Explanation, Locus
from litotes.training.tagging.tagger import Tagger


def make_tagger(tiny: Pretrained, kind: str) -> Tagger:
    """Random, but for an output that prefers the second label, or a stretch, everywhere."""
    source = pretrained.load(tiny.name)
    task = Task("locus", ("kept", "changed") if kind == "tagging" else ())
    network = WordModel(source.encoder, task, kind=kind, dropout=0.0)
    with torch.no_grad():
        output: Any = network.heads["locus"]
        output.output.weight.zero_()
        output.output.bias.copy_(torch.tensor([0.0, 5.0]))
    model = SavedWordModel(network, source.tokenizer, source.name, None, "signs")
    return Tagger(model, device="cpu")


def test_explanations_carry_the_marks(
    shared_tiny: Pretrained, predictor: Predictor, ask: Any
) -> None:
    tagger = make_tagger(shared_tiny, "tagging")
    app = create_app({"tiny": predictor}, load_locus=lambda: tagger)
    body = {"text": "so great. tea", "methods": ["random"], "method": "random"}
    content = ask(app, "/v1/explain", body).json()
    assert isinstance(Explanation.model_validate(content).locus, Locus)
    # everything is changed: words with nothing but blanks between them are one mark
    found = content["locus"]
    assert found["title"] == "Where the sarcasm sits"
    assert [(one["start"], one["end"]) for one in found["marks"]] == [(0, 13)]
    assert all(one["label"] is None for one in found["marks"])  # there is one label to mark


def test_a_service_without_one_says_nothing(predictor: Predictor, ask: Any) -> None:
    app = create_app({"tiny": predictor})
    body = {"text": "so great", "methods": ["random"], "method": "random"}
    assert "locus" not in ask(app, "/v1/explain", body).json()
