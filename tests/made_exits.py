"""Exits with random weights, to put into tiny models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier, EarlyExits
from litotes.model.exits import STORED, Exits, Promise, StaticTable, Sureness

PROMISE = Promise(allowed=0.01, confidence=0.95, n=1000, n_differ=4)
N_OUTPUTS = {"mood": 3, "sarcasm": 2}
N_PIECES = 40


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


def table_of(n_pieces: int = N_PIECES, n_outputs: dict[str, int] = N_OUTPUTS) -> StaticTable:
    shape = (1 + n_pieces, sum(n_outputs.values()))
    drawn = np.random.default_rng(0).normal(size=shape)
    return StaticTable(drawn.astype(STORED), n_outputs)


def with_table(model: Model, layers: Sequence[int], *, threshold: float) -> Model:
    """Exits after some layers, and a table before the first."""
    tasks = model.classifier.tasks
    sureness = {layer: dict.fromkeys(tasks, Sureness(-1.0, 1.0)) for layer in (0, *layers)}
    rule = Exits((0, *layers), sureness, threshold, PROMISE)
    exits = exits_of(model.classifier, layers or (1,), threshold=threshold)
    if not layers:
        exits = type(exits).for_classifier(model.classifier, rule)
    n_outputs = {name: task.n_outputs for name, task in tasks.items()}
    table = table_of(model.classifier.encoder.spec.n_vocabulary, n_outputs)
    return replace(model, exits=replace(exits, rule=rule, table=table))
