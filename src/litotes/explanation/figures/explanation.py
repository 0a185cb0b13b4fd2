"""One explanation as a picture: the answer, the shaded words, standard beside effective attention,
and what left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.figures import INK
from litotes.encoder.tokenizer import Word
from litotes.explanation.explanation import Explanation, LayerMaps
from litotes.explanation.figures import shaded_words
from litotes.explanation.figures.shaded_words import FOR_LINE, LINE_INCHES, PlacedText, drawable
from litotes.explanation.figures.survival import draw_bands, inches_of
from litotes.explanation.page.words import method_name
from litotes.explanation.shaded_text import answer_in_words

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
    """layer, head: counted from 0; without them the last layer that still sees half of the words,
    and the mean of its attention heads.

    The figure counts from 1.
    """
    from matplotlib.figure import Figure  # takes half a second; only figures need it

    number = explanation.layer_to_show if layer is None else layer
    maps = _maps_of(explanation, number, head)
    placed = shaded_words.lay_out(explanation.read, width=_WIDTH - 2 * _EDGE)
    any_left = any(left is not None for left in explanation.trace.left_after)
    heights = _heights(explanation, placed, any_left=any_left)
    picture = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    rows = picture.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_answer(explanation, rows[0])
    _draw_words(explanation, placed, rows[1], height=heights[1])
    _draw_maps(explanation, number, maps, rows[2], _map_title(explanation, number, head))
    if any_left:
        _draw_departures(explanation, rows[3])
    return picture


def _heights(
    explanation: Explanation, placed: Sequence[PlacedText], *, any_left: bool
) -> list[float]:
    """Inches of the answer, the words, the maps and, if any word left, the departures."""
    heights = [
        0.3 * max(len(explanation.probabilities), 0.5) + 0.55,
        LINE_INCHES * shaded_words.n_lines_of(placed) + _TITLE,
        _MAP_HEIGHT,
    ]
    if any_left:
        heights.append(inches_of(len(explanation.layers), len(explanation.read.words)))
    return heights


def _maps_of(explanation: Explanation, layer: int, head: int | None) -> dict[str, NDArray[Any]]:
    """The maps to draw, (query, key), of one attention head or the mean over all; one where both
    are the same.
    """
    n_layers = explanation.n_layers_with_words
    if not 0 <= layer < n_layers:
        gone = (
            "" if n_layers == len(explanation.layers) else ", the others see no word of this text"
        )
        raise UserError(
            f"There is no map of layer {layer}: choose one from 0 to {n_layers - 1}{gone}."
        )
    found = explanation.layers[layer]
    if head is None:
        standard, effective = found.standard.mean(0), found.effective.mean(0)
    elif head in found.heads:
        place = found.heads.index(head)
        standard, effective = found.standard[place], found.effective[place]
    else:
        raise UserError(
            f"Layer {layer} did not use attention head {head} for this text. Choose one of"
            f" {', '.join(map(str, found.heads))}."
        )
    maps = {"standard": standard, "effective": effective}
    if not any(_null_dimensions(found, head)):
        del maps["effective"]
    return {name: one.float().cpu().numpy() for name, one in maps.items()}


def _null_dimensions(layer: LayerMaps, head: int | None) -> tuple[int, ...]:
    """Of the attention heads that are shown."""
    return layer.n_null if head is None else (layer.n_null[layer.heads.index(head)],)


def _map_title(explanation: Explanation, layer: int, head: int | None) -> str:
    maps = explanation.layers[layer]
    which = f"attention head {(head or 0) + 1}"
    if head is None:
        which = f"mean of {len(maps.heads)} attention heads"
    nulls = _null_dimensions(maps, head)
    low, high = min(nulls), max(nulls)
    n_null = f"{low}" if low == high else f"{low} to {high}"
    lost = "standard and effective attention are the same"
    if high:
        lost = f"null space: {n_null} of {len(maps.origin)}"
    return f"layer {layer + 1}, {which}; {lost}"


def _draw_words(
    explanation: Explanation, placed: Sequence[PlacedText], into: Any, *, height: float
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
    if explanation.probabilities:
        _draw_bars(explanation.probabilities, ax)
    else:
        ax.set_axis_off()


def _draw_bars(probabilities: Mapping[str, float], ax: Axes) -> None:
    names, shares = [drawable(label) for label in probabilities], list(probabilities.values())
    places = range(len(names))
    ax.barh(places, [1.0] * len(names), color="#eef1f4", height=0.6)
    ax.barh(places, shares, color=FOR_LINE, height=0.6)
    for place, share in enumerate(shares):
        ax.text(1.01, place, f"{share * 100:.1f} %", va="center", fontsize=9)
    ax.set_yticks(places, names, fontsize=9, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.6)  # bars need not be as wide as the page
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _draw_maps(
    explanation: Explanation,
    layer: int,
    maps: Mapping[str, NDArray[Any]],
    into: Any,
    title: str,
) -> None:
    """On one scale that ends where weights may: standard ones are shares, from 0 to 1; effective
    ones have a sign, so that 0 is in the middle, and may lie beyond 1.
    """
    from matplotlib.colors import LinearSegmentedColormap

    is_signed = "effective" in maps
    most = max(1.0, *(float(np.abs(one).max()) for one in maps.values()))
    norm = _root_norm(-most if is_signed else 0.0, most)
    ends = ["#a33f00", "#ffffff", "#08407c"] if is_signed else ["#ffffff", "#08407c"]
    colours = LinearSegmentedColormap.from_list("weights", ends)
    axes = into.subplots(1, 2)
    axes[1].set_axis_off()
    for ax, (name, values) in zip(axes, maps.items(), strict=False):
        image = ax.imshow(values, cmap=colours, norm=norm, interpolation="nearest")
        ax.set_axis_on()
        ax.set_title(name if is_signed else "", fontsize=10)
        _write_pieces(explanation, explanation.layers[layer], ax)
    into.suptitle(f"{title}\n", fontsize=10, x=_EDGE / _WIDTH, ha="left")
    ticks = [share * most for share in ((-1, -0.25, 0, 0.25, 1) if is_signed else (0, 0.25, 1))]
    bar = into.colorbar(image, ax=list(axes[: len(maps)]), shrink=0.7, pad=0.02, ticks=ticks)
    bar.ax.set_yticklabels([f"{tick:.2g}" for tick in ticks], fontsize=8)
    bar.outline.set_visible(False)


def _root_norm(least: float, most: float) -> Any:
    """Weak weights are lifted: the colour goes with the square root of the weight."""
    from matplotlib.colors import FuncNorm

    def root(weights: NDArray[Any]) -> NDArray[Any]:
        return np.sign(weights) * np.sqrt(np.abs(weights))

    def square(roots: NDArray[Any]) -> NDArray[Any]:
        return np.sign(roots) * roots**2

    return FuncNorm((root, square), vmin=least, vmax=most)


def _write_pieces(explanation: Explanation, layer: LayerMaps, ax: Axes) -> None:
    ax.set_xlabel("looked at", fontsize=8)
    ax.set_ylabel("asks", fontsize=8)
    n_pieces = len(layer.origin)
    if n_pieces > MOST_WRITTEN:
        ax.tick_params(labelsize=7, length=2)
        return
    ax.tick_params(labelsize=min(7, 260 / n_pieces), length=2)
    written = [drawable(piece) for piece in explanation.read.written]
    names = ["(gone)" if place < 0 else written[place] for place in layer.origin]
    ax.set_xticks(range(n_pieces), names, rotation=90, parse_math=False)
    ax.set_yticks(range(n_pieces), names, parse_math=False)


def _draw_departures(explanation: Explanation, into: Any) -> None:
    """Layers × words: the share of a word's pieces that a layer sees."""
    words = explanation.read.words
    seen = [[_share_seen(word, row) for word in words] for row in explanation.trace.seen]
    bands = draw_bands(seen, [word.written for word in words], into)
    bands[0].set_title("what each layer still sees of the words", fontsize=10, loc="left")


def _share_seen(word: Word, seen: Sequence[bool]) -> float:
    return sum(seen[piece] for piece in word.pieces) / len(word.pieces)
