"""What is measured: a dense model and a pruned one, from folders, or from an encoder as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.errors import UserError
from litotes.data.tasks import SENTIMENT
from litotes.encoders import pretrained
from litotes.encoders.reshaping import rebuild_encoder
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
    """Two models of the same texts and tasks. notes: what may not be read out of their speed."""

    dense: Model
    pruned: Model
    notes: tuple[str, ...] = ()

    def of(self, kind: str) -> Model:
        """The one called `dense` or `pruned`."""
        return {"dense": self.dense, "pruned": self.pruned}[kind]

    def as_json(self) -> dict[str, Any]:
        """The encoder they began with, their head and tasks, the pruning, and how much was trained."""
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
    model: Path | None = None, pruned: Path | None = None, *, encoder: str = "minilm"
) -> Subject:
    """The models of two folders; without `pruned` the dense one with a pruning put on; without both
    the encoder with a fresh head.
    """
    if model is None:
        if pruned is not None:
            raise UserError(
                "--pruned is compared with the dense model it was made from: give that one with"
                " --model."
            )
        dense = _fresh(encoder)
        return Subject(dense, _with_pruning(dense), (UNTRAINED,))
    dense = load_model(model)
    if not dense.classifier.encoder.spec.is_plain:
        raise UserError(
            f"{model} is not dense: its attention is not plain softmax, or something is pruned."
            " Give it with --pruned."
        )
    if pruned is None:
        return Subject(dense, _with_pruning(dense), (ONLY_DENSE,))
    return Subject(dense, _belonging(load_model(pruned), dense, pruned))


def _fresh(name: str) -> Model:
    loaded = pretrained.load(name)
    torch.manual_seed(0)
    classifier = Classifier(loaded.encoder, (SENTIMENT,), head="linear", dropout=0.0).eval()
    return Model(classifier, loaded.tokenizer, loaded.name, loaded.sha256)


def _with_pruning(dense: Model) -> Model:
    whole = dense.classifier
    encoder = rebuild_encoder(
        whole.encoder, pruning=PRUNING, pruning_options=_options(whole.encoder.spec.n_layers)
    )
    classifier = Classifier(
        encoder, list(whole.tasks.values()), head=whole.head_name, dropout=0.0
    ).eval()
    classifier.heads.load_state_dict(whole.heads.state_dict())
    return replace(dense, classifier=classifier)


def _options(n_layers: int) -> Mapping[str, Any]:
    depths = np.linspace(1 / n_layers, 1, n_layers)
    known = np.linspace(1 / len(SHARES), 1, len(SHARES))
    return {"shares": [round(float(share), 4) for share in np.interp(depths, known, SHARES)]}


def _belonging(pruned: Model, dense: Model, folder: Path) -> Model:
    ours, theirs = pruned.classifier, dense.classifier
    if (ours.tasks, ours.head_name) != (theirs.tasks, theirs.head_name):
        raise UserError(
            f"{folder} answers other tasks than --model, or has another head: give the folder that"
            " was pruned from it."
        )
    sizes = ("family", "width", "n_layers", "n_vocabulary")
    if any(
        getattr(ours.encoder.spec, size) != getattr(theirs.encoder.spec, size) for size in sizes
    ):
        raise UserError(
            f"{folder} has another encoder than --model: give the folder that was pruned from it."
        )
    return pruned
