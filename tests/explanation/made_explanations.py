"""Explanations made on the spot: a tiny random model really looks at the text, the methods' weights
are made up.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from litotes.core.values import Answer, Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.tokenizer import Pieces, ReadText, Word
from litotes.explanation.explanation import (
    Curve,
    Explanation,
    Faithfulness,
    LayerMaps,
    Shading,
    Trace,
)
from litotes.explanation.observation import layer_maps, observe, trace_of
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier

PRUNED = {
    "n_layers": 4,
    "pruning": "cascade",
    "pruning_options": {"schedule": "linear", "final": 0.3, "final_heads": 0.5, "fuse": True},
}

TEXT = "Oh great, the queue is not bad. I love it, and the tea!"
SARCASM = {"not sarcastic": 0.134, "sarcastic": 0.866}
METHODS = {"rollout": False, "integrated_gradients": True, "occlusion": True}


def explained(
    tiny: Pretrained, text: str = TEXT, pair: str | None = None, **choices: Any
) -> Explanation:
    """choices: what is changed of the encoder, as in PRUNED; layers it gains are random."""
    torch.manual_seed(1)
    encoder = tiny.encoder
    if choices:
        encoder = Encoder(replace(tiny.encoder.spec, **choices))
        encoder.load_state_dict(tiny.encoder.state_dict(), strict=False)
    tasks = [Task("sarcasm", tuple(SARCASM)), Task("sentiment", ("negative", "positive"))]
    model = Model(
        Classifier(encoder, tasks, head="mean", dropout=0.0).eval(), tiny.tokenizer, "tiny", None
    )
    read = tiny.tokenizer.read([text], [pair])[0]
    [observation] = observe(model, [read])
    return explanation_of(read, layer_maps(observation), trace_of(observation))


def explanation_of(
    read: ReadText,
    layers: tuple[LayerMaps, ...],
    trace: Trace,
    *,
    answers: Mapping[str, Answer] | None = None,
) -> Explanation:
    """The method shown first is `integrated_gradients`, whose weights are signed."""
    chosen = answers or {
        "sarcasm": Answer("sarcastic", 0.866),
        "sentiment": Answer("negative", 0.7),
    }
    task = next(iter(chosen))
    probabilities = {} if chosen[task].probability is None else SARCASM
    return Explanation(
        read,
        task,
        chosen,
        probabilities,
        "integrated_gradients",
        shadings_of(len(read.words)),
        trace,
        layers,
        "runs/mine <b>",
    )


def left_after(explanation: Explanation, *layers: int | None) -> Explanation:
    """The same, but its words leave after these layers, and what belongs to no word stays."""
    left: list[int | None] = [None] * len(explanation.read.written)
    for word, layer in zip(explanation.read.words, layers, strict=True):
        for piece in word.pieces:
            left[piece] = layer
    return replace(explanation, trace=replace(explanation.trace, left_after=tuple(left)))


def without_null_space(explanation: Explanation) -> Explanation:
    """The same, but of a text so short that all of its attention is effective."""
    layers = []
    for layer in explanation.layers:
        n_null = (0,) * len(layer.heads)
        layers.append(replace(layer, effective=layer.standard, n_null=n_null))
    return replace(explanation, layers=tuple(layers))


def shadings_of(n_words: int) -> dict[str, Shading]:
    chance = random.Random(0)
    found = {}
    for name, is_signed in METHODS.items():
        weights = tuple(
            chance.gauss(0, 1) if is_signed else chance.random() for _ in range(n_words)
        )
        shares = (0.0, 0.5, 1.0)
        tested = Faithfulness(
            Curve(shares, (0.87, 0.5, 0.2)),
            Curve(shares, (0.2, 0.6, 0.87)),
            chance.random(),
            chance.random(),
        )
        found[name] = Shading(
            name, is_signed, weights, {"convergence_delta": 0.01} if is_signed else {}, tested
        )
    return found


def long_explanation(
    *, n_pieces: int, n_layers: int, n_heads: int, head_width: int = 32
) -> Explanation:
    """Random weights as peaked as real ones; the values have the rank an attention head has."""
    generator = torch.Generator().manual_seed(0)
    layers = []
    for _ in range(n_layers):
        standard = (2 * torch.randn(n_heads, n_pieces, n_pieces, generator=generator)).softmax(-1)
        basis = torch.linalg.qr(torch.randn(n_heads, n_pieces, head_width, generator=generator)).Q
        effective = standard @ basis @ basis.mT
        heads = tuple(range(n_heads))
        layers.append(
            LayerMaps(
                heads,
                tuple(range(n_pieces)),
                standard,
                effective,
                (n_pieces - head_width,) * n_heads,
            )
        )
    text = " ".join(f"w{number}" for number in range(n_pieces))
    words, start = [], 0
    for number, written in enumerate(text.split()):
        words.append(Word(written, start, start + len(written), False, (number,)))
        start += len(written) + 1
    read = ReadText(
        text, None, Pieces([0] * n_pieces, [0] * n_pieces, False), tuple(text.split()), tuple(words)
    )
    return explanation_of(
        read,
        tuple(layers),
        Trace(read.written, (None,) * n_pieces, (tuple(range(n_heads)),) * n_layers),
    )
