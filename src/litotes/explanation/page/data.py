"""What the page's script reads: words, methods and layers as JSON, and every map in a place of its
own, unpacked when it is looked at.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d

from litotes.core.text import harmless
from litotes.explanation.explanation import Explanation, LayerMaps, Shading
from litotes.explanation.page.map_codec import PackedMap, as_factors, as_levels, levels_within
from litotes.explanation.page.words import method_name, shade_classes

BUDGET = 6_400_000
"""Letters for all standard maps.

The effective maps of 6 × 12 attention heads and 512 pieces add 3 million: 10 MB are not reached.
"""

N_THUMB = 24
"""Cells of a small picture, each way."""

_MOST_BELOW = 127


def data_html(explanation: Explanation) -> str:
    """The data as elements that are never run: a `<` inside would be the only danger, and there is
    none.
    """
    mapped = explanation.layers[: explanation.n_layers_with_words]
    n_levels = levels_within([layer.standard for layer in mapped], BUDGET)
    packed = [list(packed_heads(layer, n_levels)) for layer in mapped]
    content = json.dumps(
        _data(explanation, packed), ensure_ascii=True, separators=(",", ":"), allow_nan=False
    )
    content = content.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    elements = [f'<script type="application/json" id="facts">{content}</script>']
    for layer, heads in enumerate(packed):
        for place, maps in enumerate(heads):
            for kind, one in maps.items():
                name = f"map-{layer}-{place}-{kind}"
                elements.append(f'<script type="text/plain" id="{name}">{one.data}</script>')
    return "\n".join(elements)


def packed_heads(layer: LayerMaps, n_levels: int) -> Iterator[dict[str, PackedMap]]:
    """Both maps of every attention head; the effective one is left out where it is the same."""
    n_pieces = len(layer.origin)
    for standard, effective, n_null in zip(
        layer.standard, layer.effective, layer.n_null, strict=True
    ):
        maps = {"standard": as_levels(standard, n_levels=n_levels)}
        rank = n_pieces - n_null
        if n_null and 2 * rank < n_pieces:
            maps["effective"] = as_factors(effective, rank=rank)
        elif n_null:
            maps["effective"] = as_levels(effective, n_levels=min(n_levels, _MOST_BELOW))
        yield maps


def _data(explanation: Explanation, packed: list[list[dict[str, PackedMap]]]) -> dict[str, Any]:
    words = []
    for word, left in zip(explanation.read.words, explanation.left_at_layer, strict=True):
        words.append({"written": harmless(word.written), "pieces": word.pieces, "left": left})
    layers = []
    for layer, heads in zip(explanation.layers, packed, strict=False):  # as far as they have maps
        layers.append(_layer_data(layer, heads))
    shadings = explanation.shadings.values()
    return {
        "method": explanation.method,
        "methods": {shading.method: _method_data(shading) for shading in shadings},
        "words": words,
        "pieces": [harmless(piece) for piece in explanation.read.written],
        "left": explanation.trace.left_after,
        "heads": explanation.trace.heads,
        "layers": layers,
        "shown": explanation.layer_to_show,
    }


def _method_data(shading: Shading) -> dict[str, Any]:
    return {
        "name": method_name(shading.method),
        "weights": [_short(weight) for weight in shading.weights],
        "classes": shade_classes(shading),
        "isSigned": shading.is_signed,
    }


def _layer_data(layer: LayerMaps, packed: list[dict[str, PackedMap]]) -> dict[str, Any]:
    heads = []
    for number, n_null, maps in zip(layer.heads, layer.n_null, packed, strict=True):
        head: dict[str, Any] = {"number": number, "nNull": n_null}
        for kind, one in maps.items():
            head[kind] = {"levels": one.n_levels, "scales": one.scales, "error": _short(one.error)}
        heads.append(head)
    thumbs = {"standard": thumbs_of(layer.standard), "effective": thumbs_of(layer.effective)}
    return {"origin": layer.origin, "heads": heads, "thumbs": thumbs}


def thumbs_of(maps: Tensor) -> str:
    """Small pictures of all attention heads and, first, of their mean: in each cell the weight
    furthest from 0, as steps of −127 to 127.
    """
    shown = torch.cat([maps.mean(0, keepdim=True), maps]).float().cpu()
    above, below = adaptive_max_pool2d(shown, N_THUMB), adaptive_max_pool2d(-shown, N_THUMB)
    furthest = torch.where(above >= below, above, -below)  # (1 + attention_head, N_THUMB, N_THUMB)
    share = furthest / furthest.abs().amax((1, 2), keepdim=True).clamp_min(1e-30)
    steps = (share.sign() * share.abs().sqrt() * _MOST_BELOW).round().to(torch.int8)
    return b64encode(steps.numpy().tobytes()).decode()


def layer_options(explanation: Explanation) -> str:
    """The choices of a layer: those that see a word."""
    options = ""
    for layer in range(explanation.n_layers_with_words):
        selected = " selected" if layer == explanation.layer_to_show else ""
        options += f"<option{selected}>{layer + 1}</option>"
    return options


def mapless_note(explanation: Explanation) -> str:
    """Why some layers cannot be chosen; nothing where all can."""
    n_layers, n_mapped = len(explanation.layers), explanation.n_layers_with_words
    if n_mapped == n_layers:
        return ""
    said = f"Layer {n_layers} sees no word any more, so it has no map here."
    if n_layers - n_mapped > 1:
        said = (
            f"Layers {n_mapped + 1} to {n_layers} see no word any more, so they have no map here."
        )
    return f'<p class="note">{said}</p>'


def _short(value: float) -> float:
    return float(f"{value:.4g}")
