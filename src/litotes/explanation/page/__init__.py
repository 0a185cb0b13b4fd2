"""The page of one explanation: the answer, the words it rests on, those that left, and the
attention behind them.

One file for any browser, with no network: the page's policy allows its own script and style, known
by their hashes, and nothing else. The script reads words, methods and layers as JSON, and every map
from a place of its own, unpacked when it is looked at.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from markupsafe import Markup
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d

from litotes.core.pages import render
from litotes.core.text import harmless
from litotes.core.values import WordPrediction
from litotes.explanation.explanation import (
    Curve,
    Explanation,
    LayerMaps,
    Shading,
    answer_in_words,
)
from litotes.explanation.marked_words import marking
from litotes.explanation.page.map_codec import PackedMap, as_factors, as_levels, levels_within

BUDGET = 6_400_000
"""Letters for all standard maps.

The effective maps of 6 × 12 attention heads and 512 pieces add 3 million: 10 MB are not reached.
"""

N_THUMB = 24
"""Cells of a small picture, each way."""

_MOST_BELOW = 127

_CURVE_WIDTH, _CURVE_HEIGHT = 96, 34

_N_ROWS = 25
"""Words of one grid; longer texts get several side by side, so that a page of paper holds a few
hundred words.
"""


def why_html(explanation: Explanation, locus: WordPrediction | None = None) -> str:
    """The whole page. locus: what a model of words marks in the same text.

    Layers and attention heads are counted from 1 in it, and in the links it makes; in `why.json`
    from 0.
    """
    mapped = explanation.layers[: explanation.n_layers_with_words]
    n_levels = levels_within([layer.standard for layer in mapped], BUDGET)
    packed = [list(packed_heads(layer, n_levels)) for layer in mapped]
    columns = explanation.read.words, explanation.left_at_layer, explanation.share_seen.T
    words = list(zip(*columns, strict=True))
    style, script = _file("why.css"), _file("maps.js") + "\n" + _file("why.js")
    return render(
        "explanation/page/why.html",
        style=Markup(style),  # noqa: S704 — the page's own
        script=Markup(script),  # noqa: S704
        style_hash=_hash(style),
        script_hash=_hash(script),
        explained=explanation,
        words=words,
        grids=[words[start : start + _N_ROWS] for start in range(0, len(words), _N_ROWS)],
        shading=explanation.shadings[explanation.method],
        classes=shade_classes(explanation.shadings[explanation.method]),
        tested={
            name: shading.faithfulness
            for name, shading in explanation.shadings.items()
            if shading.faithfulness is not None
        },
        limits=_limits(explanation),
        points=_points,
        in_words=answer_in_words,
        locus=None if locus is None else marking(locus),
        facts=Markup(_facts(explanation, packed)),  # noqa: S704 — `<` stands in it as \u003c
        maps=[
            (f"map-{layer}-{place}-{kind}", Markup(one.data))  # noqa: S704 — base64
            for layer, heads in enumerate(packed)
            for place, maps in enumerate(heads)
            for kind, one in maps.items()
        ],
    )


def shade_classes(shading: Shading) -> list[str]:
    """Names each word's CSS classes: `for s8` is the greatest weight, `against s3` a middling one
    below 0; nothing near 0.
    """
    sides = ("", "for", "against")
    return [
        f"{sides[(step > 0) - (step < 0)]} s{abs(step)}" if step else "" for step in shading.steps
    ]


def _limits(explanation: Explanation) -> tuple[float, float]:
    """Finds the curves' scale: 0 to 1 for probabilities, the values' own range in a regression."""
    if explanation.answer.probability is not None:
        return 0.0, 1.0
    tested = [one.faithfulness for one in explanation.shadings.values() if one.faithfulness]
    curves = [curve for one in tested for curve in (one.deletion, one.sufficiency)]
    values = [value for curve in curves for value in curve.values]
    low, high = min(values, default=0.0), max(values, default=0.0)
    return (low, high) if high > low else (low - 1, high + 1)


def _points(curve: Curve, limits: tuple[float, float]) -> str:
    """Writes the curve as the points of a line in a small drawing."""
    low, high = limits
    return " ".join(
        f"{_CURVE_WIDTH * share:.1f},{_CURVE_HEIGHT * (1 - (value - low) / (high - low)):.1f}"
        for share, value in zip(curve.shares, curve.values, strict=True)
    )


def packed_heads(layer: LayerMaps, n_levels: int) -> Iterator[dict[str, PackedMap]]:
    """Packs each attention head's maps; the effective one is left out where it is the same."""
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


def _facts(explanation: Explanation, packed: list[list[dict[str, PackedMap]]]) -> str:
    """Writes what the script reads, as JSON that may stand in HTML."""
    words = [
        {"written": harmless(word.written), "pieces": word.pieces, "left": left}
        for word, left in zip(explanation.read.words, explanation.left_at_layer, strict=True)
    ]
    methods = {
        name: {
            "name": harmless(name.replace("_", " ")),
            "weights": [_short(weight) for weight in shading.weights],
            "classes": shade_classes(shading),
            "isSigned": shading.is_signed,
        }
        for name, shading in explanation.shadings.items()
    }
    data = {
        "method": explanation.method,
        "methods": methods,
        "words": words,
        "pieces": [harmless(piece) for piece in explanation.read.written],
        "left": explanation.trace.left_after,
        "heads": explanation.trace.heads,
        # as far as they have maps
        "layers": list(map(_layer_facts, explanation.layers, packed)),
        "shown": explanation.layer_to_show,
    }
    content = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return content.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _layer_facts(layer: LayerMaps, packed: list[dict[str, PackedMap]]) -> dict[str, Any]:
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


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
