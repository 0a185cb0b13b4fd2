"""Attention between words, layer by layer: small enough to send and to draw, where the maps by
piece and attention head are not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from litotes.explanation.explanation import Explanation, LayerMaps

MOST_WORDS = 64
"""Between which every weight is given.

For longer texts only what each word receives is given: 4,096 cells cannot be read.
"""


def word_maps(explanation: Explanation) -> list[dict[str, Any]]:
    """For every layer {"attention_heads": n, "received": {kind: (word)}, "between": {kind: (word,
    word)} or None}.

    kind: standard, effective. With A the mean over the attention heads that were there, word w
    gives word v

        B[w, v] = mean over pieces p of w of  sum over pieces q of v of  A[p, q],

    and v receives the mean of B[·, v] over the words and special pieces still there. Special pieces
    ([CLS]) and a fused piece are no words, so the rows of B need not add up to 1. A word that has
    left has 0 everywhere.
    """
    # (piece,)
    word_of = torch.tensor([-1 if word is None else word for word in explanation.read.word_of()])
    return [_layer(layer, word_of, len(explanation.read.words)) for layer in explanation.layers]


def _layer(layer: LayerMaps, word_of: Tensor, n_words: int) -> dict[str, Any]:
    origin = torch.tensor(layer.origin)  # (place,): which piece is where in this layer
    is_piece = origin >= 0
    owner = torch.where(is_piece, word_of[origin.clamp_min(0)], -1)  # (place,)
    holds = (owner == torch.arange(n_words)[:, None]).float()  # (word, place)
    specials = torch.eye(len(origin))[is_piece & (owner < 0)]  # (special, place)
    received, between = {}, {}
    for kind, maps in (("standard", layer.standard), ("effective", layer.effective)):
        mean = maps.float().sum(0) / max(len(layer.heads), 1)  # (query, key)
        received[kind], between[kind] = _word_weights(mean, holds, specials)
    return {
        "attention_heads": len(layer.heads),
        "received": received,
        "between": between if n_words <= MOST_WORDS else None,
    }


def _word_weights(mean: Tensor, holds: Tensor, specials: Tensor) -> tuple[Any, Any]:
    """What each word receives, (word), and what words give to words, (word, word)."""
    # a word's mean over its pieces; 0 for one that has left
    rows = holds / holds.sum(1, keepdim=True).clamp_min(1)
    n_askers = int(holds.any(1).sum()) + len(specials)
    onto = mean @ holds.T  # (query, word)
    received = (rows.sum(0) + specials.sum(0)) @ onto / max(n_askers, 1)
    return _round(received), _round(rows @ onto)


def _round(weights: Tensor) -> Any:
    """Four digits: enough to draw by, and half the size."""
    if weights.ndim > 1:
        return [_round(row) for row in weights]
    return [round(weight, 4) for weight in weights.tolist()]
