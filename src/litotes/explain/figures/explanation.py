"""One explanation as a picture: the answer, the shaded words, standard beside effective attention,
and what left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.explain.explanation import Explanation, LayerMaps
from litotes.explain.figures import shaded_words
from litotes.explain.figures.shaded_words import FOR_LINE, LINE_INCHES, Placed, drawable
from litotes.explain.figures.survival import draw_bands, inches_of
from litotes.explain.page.words import method_name
from litotes.explain.shaded_text import answer_in_words
from litotes.report.figure import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 10.0
_MAP_HEIGHT = 4.9
_EDGE = 0.2
_TITLE = 0.4
MOST_WRITTEN = 48
"""Pieces that can stand beside a map and be read."""


def figure(
    explanation: Explanation, *, layer: int | None = None, head: int | None = None
) -> Figure:
    """layer, head: counted from 0; without them the last layer and the mean of its attention heads.

    The picture counts from 1.
    """
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    number = len(explanation.layers) - 1 if layer is None else layer
    maps = _maps_of(explanation, number, head)
    placed = shaded_words.laid_out(explanation.read, width=_WIDTH - 2 * _EDGE)
    n_words = len(explanation.read.words)
    heights = [
        0.3 * max(len(explanation.probabilities), 0.5) + 0.55,
        LINE_INCHES * shaded_words.n_lines_of(placed) + _TITLE,
        _MAP_HEIGHT,
    ]
    if fades := any(left is not None for left in explanation.trace.left_after):
        heights.append(inches_of(len(explanation.layers), n_words))
    picture = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    rows = picture.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_answer(explanation, rows[0])
    _draw_words(explanation, placed, rows[1], height=heights[1])
    _draw_maps(
        explanation,
        explanation.layers[number],
        maps,
        rows[2],
        _named(explanation.layers[number], number, head),
    )
    if fades:
        _draw_fading(explanation, rows[3])
    return picture


def _maps_of(
    explanation: Explanation, layer: int, head: int | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both maps, (query, key), of one attention head or the mean over all."""
    if not 0 <= layer < len(explanation.layers):
        raise UserError(
            f"There is no layer {layer}: choose one from 0 to {len(explanation.layers) - 1}."
        )
    found = explanation.layers[layer]
    if head is not None and head not in found.heads:
        raise UserError(
            f"Layer {layer} did not use attention head {head} for this text. Choose one of"
            f" {', '.join(map(str, found.heads))}."
        )
    both = [
        maps.mean(0) if head is None else maps[found.heads.index(head)]  # (query, key)
        for maps in (found.standard, found.effective)
    ]
    return both[0].float().cpu().numpy(), both[1].float().cpu().numpy()


def _named(maps: LayerMaps, layer: int, head: int | None) -> str:
    which = (
        f"mean of {len(maps.heads)} attention heads"
        if head is None
        else f"attention head {head + 1}"
    )
    nulls = maps.n_null if head is None else [maps.n_null[maps.heads.index(head)]]
    low, high = min(nulls), max(nulls)
    lost = (
        "both maps are the same"
        if high == 0
        else f"null space: {low if low == high else f'{low} to {high}'} of {len(maps.origin)}"
    )
    return f"layer {layer + 1}, {which}; {lost}"


def _draw_words(
    explanation: Explanation, placed: Sequence[Placed], into: Any, *, height: float
) -> None:
    """In axes of exactly the width the words were laid out for."""
    shading, width = explanation.shadings[explanation.method], _WIDTH - 2 * _EDGE
    signs = " (blue, underlined: for; orange, dotted: against)" if shading.is_signed else ""
    title = f"what the model used, by {drawable(method_name(explanation.method))}{signs}"
    into.text(
        _EDGE / _WIDTH, 1 - 0.1 / height, title, fontsize=10, va="top", color=INK, parse_math=False
    )
    ax = into.add_axes((_EDGE / _WIDTH, 0, width / _WIDTH, 1 - _TITLE / height))
    shaded_words.draw(placed, shading, ax, width=width)


def _draw_answer(explanation: Explanation, into: Any) -> None:
    title = drawable(f"{explanation.task}: {answer_in_words(explanation.answer)}")
    into.suptitle(title, fontsize=14, x=_EDGE / _WIDTH, ha="left", parse_math=False)
    ax = into.subplots()
    labels = list(explanation.probabilities)
    if not labels:
        ax.set_axis_off()
        return
    ax.barh(range(len(labels)), [1.0] * len(labels), color="#eef1f4", height=0.6)
    ax.barh(
        range(len(labels)), list(explanation.probabilities.values()), color=FOR_LINE, height=0.6
    )
    for place, share in enumerate(explanation.probabilities.values()):
        ax.text(1.01, place, f"{share * 100:.1f} %", va="center", fontsize=9)
    ax.set_yticks(
        range(len(labels)), [drawable(label) for label in labels], fontsize=9, parse_math=False
    )
    ax.invert_yaxis()
    ax.set_xlim(0, 1.6)  # bars need not be as wide as the page
    ax.set_xticks([])
    _without_frame(ax)


def _draw_maps(
    explanation: Explanation,
    layer: LayerMaps,
    maps: tuple[NDArray[Any], NDArray[Any]],
    into: Any,
    title: str,
) -> None:
    """Both on one scale with 0 in the middle, weak weights lifted: the colour goes with the square
    root of the weight.
    """
    from matplotlib.colors import FuncNorm, LinearSegmentedColormap

    most = float(max(np.abs(one).max() for one in maps)) or 1.0
    norm = FuncNorm(
        (lambda w: np.sign(w) * np.sqrt(np.abs(w)), lambda r: np.sign(r) * r**2),
        vmin=-most,
        vmax=most,
    )
    colours = LinearSegmentedColormap.from_list(
        "for and against", ["#a33f00", "#ffffff", "#08407c"]
    )
    axes = into.subplots(1, 2)
    for ax, values, name in zip(axes, maps, ("standard", "effective"), strict=True):
        image = ax.imshow(values, cmap=colours, norm=norm, interpolation="nearest")
        ax.set_title(name, fontsize=10)
        _write_pieces(explanation, layer, ax)
    into.suptitle(f"{title}\n", fontsize=10, x=_EDGE / _WIDTH, ha="left")
    bar = into.colorbar(
        image, ax=list(axes), shrink=0.7, pad=0.02, ticks=[-most, -most / 4, 0, most / 4, most]
    )
    bar.ax.set_yticklabels([f"{share * most:.2g}" for share in (-1, -0.25, 0, 0.25, 1)], fontsize=8)
    bar.outline.set_visible(False)


def _write_pieces(explanation: Explanation, layer: LayerMaps, ax: Axes) -> None:
    ax.set_xlabel("looked at", fontsize=8)
    ax.set_ylabel("asks", fontsize=8)
    ax.tick_params(
        labelsize=min(7, 260 / len(layer.origin)) if len(layer.origin) <= MOST_WRITTEN else 7,
        length=2,
    )
    if len(layer.origin) > MOST_WRITTEN:
        return
    names = [
        "(gone)" if place < 0 else drawable(explanation.read.written[place])
        for place in layer.origin
    ]
    ax.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
    ax.set_yticks(range(len(names)), names, parse_math=False)


def _draw_fading(explanation: Explanation, into: Any) -> None:
    """Layers × words: the share of a word's pieces that a layer sees."""
    words = explanation.read.words
    seen = [
        [sum(row[piece] for piece in word.pieces) / len(word.pieces) for word in words]
        for row in explanation.trace.seen
    ]
    bands = draw_bands(seen, [word.written for word in words], into)
    bands[0].set_title("what each layer still sees of the words", fontsize=10, loc="left")


def _without_frame(ax: Axes) -> None:
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
