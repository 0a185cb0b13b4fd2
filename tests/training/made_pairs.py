"""Tiny encoder-decoders and invented pairs: words, and the same words the other way round."""

from __future__ import annotations

import random
from typing import Any

import torch

from litotes.data.parallel import Pair, ParallelTexts
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.training.recipe import TranslationRecipe
from litotes.training.translation.model import DecoderSpec, EncoderDecoder, draw_weights

WORDS = ["ab", "cd", "ef", "gh", "ij", "kl"]

WEIGHTINGS: dict[str, dict[str, Any]] = {
    "softmax": {"weighting": "softmax"},
    "entmax": {"weighting": "entmax", "weighting_options": {"alpha": 1.5}},
    "learned": {"weighting": "entmax", "weighting_options": {"alpha": "learned"}},
    "top_k": {"weighting": "top_k", "weighting_options": {"sparsity": 0.5}},
}


def make_texts(n_train: int = 400, *, n_others: int = 40) -> ParallelTexts:
    chance = random.Random(0)
    parts = []
    for n in (n_train, n_others, n_others):
        texts = [[chance.choice(WORDS) for _ in range(chance.randint(2, 3))] for _ in range(n)]
        parts.append(tuple(Pair(" ".join(one), (" ".join(one[::-1]),)) for one in texts))
    return ParallelTexts("reversed", *parts)


def make_recipe(**changes: Any) -> TranslationRecipe:
    """Nested tables are given whole; those not given are the tiny ones."""
    content: dict[str, Any] = {
        "data": {"source": "tsv:none"},
        "model": {
            "n_layers": 1,
            "width": 32,
            "n_attention_heads": 2,
            "n_vocabulary": 275,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "max_pieces": 24,
        },
        "training": {
            "epochs": 3,
            "batch_pieces": 1024,
            "learning_rate": 1e-2,
            "warmup_steps": 20,
            "averaged": 2,
        },
    }
    for table, values in changes.items():
        content[table] = content.get(table, {}) | values if isinstance(values, dict) else values
    return TranslationRecipe.of(content, "test")


def make_network(*, n_vocabulary: int = 11, **changes: Any) -> EncoderDecoder:
    """Random weights, evaluation mode."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "n_vocabulary": n_vocabulary,
        "width": 16,
        "n_layers": 2,
        "n_attention_heads": 2,
        "inner_width": 24,
        "n_positions": 12,
        "norm_first": True,
    }
    both = ("weighting", "weighting_options", "norm_first")
    sizes |= {name: changes[name] for name in both if name in changes}
    encoder = Encoder(EncoderSpec(family="bert", **sizes))
    network = EncoderDecoder(encoder, DecoderSpec(**{"source_width": 16, **sizes, **changes}))
    draw_weights(network)
    return network.eval()
