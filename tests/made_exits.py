"""Exits with random weights, to put into tiny models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.model.early_answers import EarlyExits
from litotes.model.exits import Exits, Promise, Sureness

PROMISE = Promise(allowed=0.01, confidence=0.95, n=1000, n_differ=4)


def exits_of(
    classifier: Classifier, layers: Sequence[int], *, threshold: float, seed: int = 0
) -> EarlyExits:
    """Exits that are the surer the larger their margin is."""
    sureness = {layer: dict.fromkeys(classifier.tasks, Sureness(-1.0, 1.0)) for layer in layers}
    rule = Exits(tuple(layers), sureness, threshold, PROMISE)
    torch.manual_seed(seed)
    exits = EarlyExits.for_classifier(classifier, rule)
    for parameter in exits.heads.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    exits.heads.to(next(classifier.parameters()).dtype)
    return exits


def with_exits(model: Model, layers: Sequence[int], *, threshold: float) -> Model:
    return replace(model, exits=exits_of(model.classifier, layers, threshold=threshold))
