"""Tiny models to look into: dense, pruned, with fused pieces, without some heads, sparse, of newer
families, for a pair, for a number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.explanation.observation import Observation, observe
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier

TEXTS = (
    "great queue, the tea is bad",
    "a",
    (
        "it is not the great love of tea and it is not the hate of a queue, is it? i love it! the"
        " tea is great."
    ),
    "bad bad bad",
)

KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "sparse": {"weighting": "entmax", "weighting_options": {"alpha": "learned"}},
    "cascade": {
        "pruning": "cascade",
        "pruning_options": {"schedule": [0.6, 0.3], "final_heads": 0.5},
    },
    "fused": {"pruning": "cascade", "pruning_options": {"schedule": [0.6, 0.3], "fuse": True}},
    "restored": {"pruning": "learned", "pruning_options": {"shares": [0.6, 0.3], "restore": True}},
    "compacted": {"heads_kept": [[0, 2], [3]]},
    "deberta": {
        "family": "deberta-v2",
        "position_terms": ["c2p", "p2c"],
        "n_distance_buckets": 8,
        "farthest": 60,
    },
    "modernbert": {
        "family": "modernbert",
        "n_segments": 0,
        "has_positions": False,
        "rotary_base": 100.0,
        "local_rotary_base": 20.0,
        "window": 12,
        "global_every": 2,
        "norm_first": True,
        "is_gated": True,
        "attention_bias": False,
        "pruning": "cascade",
        "pruning_options": {"schedule": [0.6, 0.3]},
    },
}

SENTIMENT = Task("sentiment", ("negative", "positive"))


def model_of(
    tiny: pretrained.Pretrained, *tasks: Task, head: str = "mean", **choices: Any
) -> Model:
    """A random model whose attention heads differ from one another."""
    torch.manual_seed(0)
    encoder = Encoder(replace(tiny.encoder.spec, **choices))
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    classifier = Classifier(encoder, tasks or (SENTIMENT,), head=head, dropout=0.0).eval()
    return Model(classifier, tiny.tokenizer, "tiny", None)


def observations_of(
    model: Model, texts: tuple[str, ...] = TEXTS, **options: Any
) -> list[Observation]:
    return observe(model, model.tokenizer.read(list(texts)), **options)
