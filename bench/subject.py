"""What is measured: a dense model and a pruned one, from folders, or from an encoder as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.errors import UserError
from litotes.data.corpus import SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.reshaping import rebuild_encoder
from litotes.model.checkpoint import Model, load_model
from litotes.model.classifier import Classifier

PRUNING = "learned"
SHARES = (0.7, 0.5, 0.35, 0.25, 0.2, 0.15)
"""What goes on after each of six layers where no pruned model is given; other depths go down the
same slope.
"""

UNTRAINED = (
    "The head is fresh and the pruning untrained: speed alone is measured here, and nothing is said"
    " about what pruning loses."
)
ONLY_DENSE = (
    "The pruning was put on the dense model without training: its speed is measured, what it loses"
    " is not."
)


@dataclass(frozen=True)
class Subject:
    """Two models of the same texts and tasks. notes: what their speed does not show."""

    dense: Model
    pruned: Model
    notes: tuple[str, ...] = ()

    def of(self, kind: str) -> Model:
        """The one called `dense` or `pruned`."""
        return {"dense": self.dense, "pruned": self.pruned}[kind]

    def as_json(self) -> dict[str, Any]:
        """Their encoder, head, tasks and pruning, and whether they were trained."""
        classifier, spec = self.dense.classifier, self.pruned.classifier.encoder.spec
        return {
            "encoder": Path(self.dense.base).name,
            "head": classifier.head_name,
            "tasks": list(classifier.tasks),
            "pruning": spec.pruning,
            "pruning_options": dict(spec.pruning_options),
            "n_attention_heads": [len(spec.heads_of(block)) for block in range(spec.n_blocks)],
            "is_trained": not self.notes,
        }


def load_subject(
    model: str | Path | None = None, pruned: str | Path | None = None, *, encoder: str = "minilm"
) -> Subject:
    """Two models, each a folder or a name; without `pruned` the dense one with a pruning put on;
    without both the encoder with a fresh head.
    """
    if model is None:
        if pruned is not None:
            raise UserError(
                "--pruned is compared with the dense model it was made from: give that one with"
                " --model."
            )
        dense = fresh_model(pretrained.load(encoder))
        return Subject(dense, _with_default_pruning(dense), (UNTRAINED,))
    dense = load_model(model)
    if not dense.classifier.encoder.spec.is_plain:
        raise UserError(
            f"{model} is not dense: its attention is not plain softmax, or something is pruned."
            " Give it with --pruned."
        )
    if pruned is None:
        return Subject(dense, _with_default_pruning(dense), (ONLY_DENSE,))
    pruned_model = load_model(pruned)
    _check_belongs(pruned_model, dense, pruned)
    return Subject(dense, pruned_model)


def fresh_model(loaded: pretrained.Pretrained) -> Model:
    """The encoder with a new head over [CLS]."""
    torch.manual_seed(0)
    classifier = Classifier(loaded.encoder, (SENTIMENT,), head="linear", dropout=0.0).eval()
    return Model(classifier, loaded.tokenizer, loaded.name, loaded.sha256)


def _with_default_pruning(dense: Model) -> Model:
    options = _options(dense.classifier.encoder.spec.n_layers)
    return with_pruning(dense, PRUNING, options)


def with_pruning(dense: Model, pruning: str, options: Mapping[str, Any]) -> Model:
    """A copy with the same weights that prunes."""
    ours = dense.classifier
    encoder = rebuild_encoder(ours.encoder, pruning=pruning, pruning_options=options)
    tasks = list(ours.tasks.values())
    classifier = Classifier(encoder, tasks, head=ours.head_name, dropout=0.0).eval()
    classifier.heads.load_state_dict(ours.heads.state_dict())
    return replace(dense, classifier=classifier)


def _options(n_layers: int) -> Mapping[str, Any]:
    depths = np.linspace(1 / n_layers, 1, n_layers)
    known = np.linspace(1 / len(SHARES), 1, len(SHARES))
    return {"shares": [round(float(share), 4) for share in np.interp(depths, known, SHARES)]}


def _check_belongs(pruned: Model, dense: Model, folder: str | Path) -> None:
    """A pruned model must have been made from the dense one."""
    ours, theirs = pruned.classifier, dense.classifier
    if (ours.tasks, ours.head_name) != (theirs.tasks, theirs.head_name):
        raise UserError(
            f"{folder} answers other tasks than --model, or has another head: give the folder that"
            " was pruned from it."
        )
    sizes = ("family", "width", "n_layers", "n_vocabulary")
    for size in sizes:
        if getattr(ours.encoder.spec, size) != getattr(theirs.encoder.spec, size):
            raise UserError(
                f"{folder} has another encoder than --model: give the folder that was pruned from"
                " it."
            )
