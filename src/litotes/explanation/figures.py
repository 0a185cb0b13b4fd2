"""One explanation as a picture: the answer, the shaded words, standard next to effective attention,
and what left (in the manner of figure 11 of Nespolo et al., "Figurative Language Understanding").

Importing this imports matplotlib, which takes half a second: only what draws does so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import FuncNorm, LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.figures import INK
from litotes.core.numbers import Floats
from litotes.core.text import harmless
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.explanation import (
    Explanation,
    LayerMaps,
    Shading,
    Side,
    answer_in_words,
    sides,
)

FOR, AGAINST, FOR_LINE, AGAINST_LINE = "#6fb1e8", "#f5a04f", "#0a5ea8", "#a84300"
"""Blue and orange, as on the page: told apart by the colour-blind; lines below the words tell them
apart in grey.
"""
GONE = "#e9edf1"

_WIDTH, _MAP_HEIGHT, _EDGE, _TITLE = 10.0, 4.9, 0.2, 0.4  # inches
MOST_WRITTEN = 48
"""Pieces that can stand next to a map and be read."""


def explanation_figure(
    explanation: Explanation, *, layer: int | None = None, head: int | None = None
) -> Figure:
    """layer, head: counted from 0; without them the last layer that still sees half of the words,
    and the mean of its attention heads.

    The figure counts from 1.
    """
    number = explanation.layer_to_show if layer is None else layer
    maps, title = _maps_of(explanation, number, head)
    placed = lay_out(explanation.read, width=_WIDTH - 2 * _EDGE)
    # inches of the answer, the words, the maps and, if any word left, the departures
    heights = [
        0.3 * max(len(explanation.probabilities), 0.5) + 0.55,
        LINE_INCHES * _n_lines(placed) + _TITLE,
        _MAP_HEIGHT,
    ]
    if any(left is not None for left in explanation.trace.left_after):
        heights.append(bands_inches(*explanation.share_seen.shape))
    picture = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    rows = picture.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_answer(explanation, rows[0])
    _draw_shading(explanation, placed, rows[1], height=heights[1])
    rows[2].suptitle(f"{title}\n", fontsize=10, x=_EDGE / _WIDTH, ha="left")
    _draw_maps(explanation, explanation.layers[number], maps, rows[2])
    for row in rows[3:]:
        words = [word.written for word in explanation.read.words]
        bands = draw_bands(explanation.share_seen, words, row)
        bands[0].set_title("what each layer still sees of the words", fontsize=10, loc="left")
    return picture


def _maps_of(
    explanation: Explanation, layer: int, head: int | None
) -> tuple[dict[str, NDArray[Any]], str]:
    """The maps to draw, (query, key), of one attention head or the mean over all; one where both
    are the same. And their title.
    """
    n_layers = explanation.n_layers_with_words
    if not 0 <= layer < n_layers:
        all_see = n_layers == len(explanation.layers)
        gone = "" if all_see else ", the others see no word of this text"
        raise UserError(
            f"There is no map of layer {layer}: choose one from 0 to {n_layers - 1}{gone}."
        )
    found = explanation.layers[layer]
    places = [place for place, one in enumerate(found.heads) if head in (None, one)]
    if not places:
        raise UserError(
            f"Layer {layer} did not use attention head {head} for this text. Choose one of"
            f" {', '.join(map(str, found.heads))}."
        )
    which = (
        f"mean of {len(places)} attention heads" if head is None else f"attention head {head + 1}"
    )
    nulls = [found.n_null[place] for place in places]
    n_null = " to ".join(str(n) for n in sorted({min(nulls), max(nulls)}))
    maps, lost = {"standard": found.standard}, "standard and effective attention are the same"
    if any(nulls):
        maps["effective"] = found.effective
        lost = f"null space: {n_null} of {len(found.origin)}"
    means = {name: one[places].mean(0).float().cpu().numpy() for name, one in maps.items()}
    return means, f"layer {layer + 1}, {which}; {lost}"


def _draw_answer(explanation: Explanation, into: Any) -> None:
    title = drawable(f"{explanation.task}: {answer_in_words(explanation.answer)}")
    into.suptitle(title, fontsize=14, x=_EDGE / _WIDTH, ha="left", parse_math=False)
    ax = into.subplots()
    if not explanation.probabilities:
        ax.set_axis_off()
        return
    names = [drawable(label) for label in explanation.probabilities]
    shares, places = list(explanation.probabilities.values()), range(len(names))
    ax.barh(places, [1.0] * len(names), color="#eef1f4", height=0.6)
    ax.barh(places, shares, color=FOR_LINE, height=0.6)
    for place, share in enumerate(shares):
        ax.text(1.01, place, f"{share * 100:.1f} %", va="center", fontsize=9)
    ax.set_yticks(places, names, fontsize=9, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.6)  # bars need not be as wide as the page
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _draw_shading(
    explanation: Explanation, placed: Sequence[PlacedText], into: Any, *, height: float
) -> None:
    """Draws in axes of exactly the width the words were laid out for."""
    shading, width = explanation.shadings[explanation.method], _WIDTH - 2 * _EDGE
    signs = " (blue, underlined: for; orange, dotted: against)" if shading.is_signed else ""
    title = f"what the model used, by {drawable(shading.method.replace('_', ' '))}{signs}"
    x, y = _EDGE / _WIDTH, 1 - 0.1 / height
    into.text(x, y, title, fontsize=10, va="top", color=INK, parse_math=False)
    ax = into.add_axes((x, 0, width / _WIDTH, 1 - _TITLE / height))
    draw_words(placed, shading, ax, width=width)


def _draw_maps(
    explanation: Explanation, layer: LayerMaps, maps: Mapping[str, NDArray[Any]], into: Any
) -> None:
    """Draws on one scale that ends where weights may: standard ones are shares, from 0 to 1;
    effective ones have a sign, so that 0 is in the middle, and may lie beyond 1.

    Weak weights are lifted: the colour goes with the square root of the weight.
    """
    is_signed = "effective" in maps
    most = max(1.0, *(float(np.abs(one).max()) for one in maps.values()))
    scale = _scale(most, is_signed=is_signed)
    axes = into.subplots(1, 2)
    axes[1].set_axis_off()
    for ax, (name, values) in zip(axes, maps.items(), strict=False):
        image = ax.imshow(values, interpolation="nearest", **scale)
        ax.set_axis_on()
        ax.set_title(name if is_signed else "", fontsize=10)
        _name_pieces(ax, explanation, layer)
    ticks = [share * most for share in ((-1, -0.25, 0, 0.25, 1) if is_signed else (0, 0.25, 1))]
    bar = into.colorbar(image, ax=list(axes[: len(maps)]), shrink=0.7, pad=0.02, ticks=ticks)
    bar.ax.set_yticklabels([f"{tick:.2g}" for tick in ticks], fontsize=8)
    bar.outline.set_visible(False)


def _scale(most: float, *, is_signed: bool) -> dict[str, Any]:
    norm = FuncNorm(
        (lambda weights: np.sign(weights) * np.abs(weights) ** 0.5, lambda x: np.sign(x) * x**2),
        vmin=-most if is_signed else 0.0,
        vmax=most,
    )
    ends = ["#a33f00", "#ffffff", "#08407c"] if is_signed else ["#ffffff", "#08407c"]
    return {"cmap": LinearSegmentedColormap.from_list("weights", ends), "norm": norm}


def _name_pieces(ax: Axes, explanation: Explanation, layer: LayerMaps) -> None:
    """Writes the pieces next to the map where they can be read."""
    ax.set_xlabel("key", fontsize=8)
    ax.set_ylabel("query", fontsize=8)
    n_pieces = len(layer.origin)
    ax.tick_params(labelsize=7, length=2)
    if n_pieces <= MOST_WRITTEN:
        ax.tick_params(labelsize=min(7, 260 / n_pieces))
        written = [drawable(piece) for piece in explanation.read.written]
        names = ["(gone)" if place < 0 else written[place] for place in layer.origin]
        ax.set_xticks(range(n_pieces), names, rotation=90, parse_math=False)
        ax.set_yticks(range(n_pieces), names, parse_math=False)


# A text with shaded words: laid out line by line, for matplotlib knows no running text.

POINTS = 10.0
LINE_INCHES = 0.27
_MISSING = "▯"
_SPLIT = re.compile(r"\n|[^\S\n]+|\S+")  # line ends, blanks and what stands between them


@dataclass(frozen=True)
class PlacedText:
    """A part of the text with its place: inches from the left, lines from the top. number: of the
    word; None between words.
    """

    written: str
    number: int | None
    x: float
    line: int
    width: float


def lay_out(read: ReadText, *, width: float) -> list[PlacedText]:
    """The text, then the pair, in lines of `width` inches.

    Parts that touch may be separated, as at the end of any long word.
    """
    placed: list[PlacedText] = []
    line, letters = -2, FontProperties(size=POINTS)
    for side in sides(read):
        x, line = 0.0, line + 2
        for written, number in _parts(side):
            if "\n" in written:
                x, line = 0.0, line + 1
                continue
            points, _, _ = text_to_path.get_text_width_height_descent(written, letters, False)
            inches = float(points) / 72
            if x and x + inches > width and written.strip():
                x, line = 0.0, line + 1
            placed.append(PlacedText(written, number, x, line, inches))
            x += inches
    return placed


def draw_words(placed: Sequence[PlacedText], shading: Shading, ax: Axes, *, width: float) -> None:
    """Draws the laid out words into axes that are `width` inches wide.

    Their places are settled, and are left out of the layout: measuring hundreds of them again and
    again takes minutes.
    """
    n_lines = _n_lines(placed)
    greatest = max(map(abs, shading.weights), default=0.0) or 1.0
    letters: dict[str, Any] = {"fontsize": POINTS, "color": "#1d2733", "zorder": 3}
    letters |= {"va": "center_baseline", "parse_math": False}
    for part in placed:
        y = n_lines - part.line - 0.5
        if part.number is not None:
            _shade(part, shading.weights[part.number] / greatest, y - 0.38, ax)
        if not part.written.isspace():
            ax.text(part.x, y, part.written, **letters).set_in_layout(False)
    ax.set_xlim(0, width)
    ax.set_ylim(0, n_lines)
    ax.set_axis_off()


def _shade(part: PlacedText, share: float, y: float, ax: Axes) -> None:
    """Puts a box behind a word, from y on, and a line under it."""
    full = np.array(to_rgb(FOR if share > 0 else AGAINST))
    tint = tuple(1 + (full - 1) * abs(share))
    box = Rectangle((part.x, y), part.width, 0.76, color=tint, linewidth=0, zorder=1)
    ax.add_patch(box).set_in_layout(False)
    if abs(share) >= 1 / 16:  # as on the page, where the lightest of eight shades begins
        colour, style = (FOR_LINE, "-") if share > 0 else (AGAINST_LINE, ":")
        line: dict[str, Any] = {"linewidth": 0.8 + 2 * abs(share), "zorder": 2}
        ends = [part.x, part.x + part.width]
        [drawn] = ax.plot(ends, [y] * 2, color=colour, linestyle=style, **line)
        drawn.set(solid_capstyle="butt", in_layout=False)


def _n_lines(placed: Sequence[PlacedText]) -> int:
    return max((part.line for part in placed), default=0) + 1


def drawable(text: str) -> str:
    """Replaces characters the font lacks with an empty box: nothing is left out, nothing warns."""
    font = get_font(findfont(FontProperties()))
    return "".join(char if font.get_char_index(ord(char)) else _MISSING for char in harmless(text))


def _parts(side: Side) -> Iterator[tuple[str, int | None]]:
    """Yields the parts, blanks and single words between the words apart; a tab is a blank."""
    more = f" … {len(side.unread):,} more characters were not read" if side.unread else ""
    for part, number in (*side.parts, (more, None)):
        if number is not None:
            yield drawable(part), number
            continue
        for piece in _SPLIT.findall(part):
            yield (piece if piece == "\n" else " " if piece.isspace() else drawable(piece)), None


# What each layer still sees: a row for each layer, a column for each word, piece or attention head.

N_ABREAST = 66
"""Names that can be read next to one another on a page."""

_MOST_BANDS = 4


def bands_inches(n_layers: int, n_names: int) -> float:
    """Computes the height of the bands together."""
    n_bands, are_written = _n_bands(n_names)
    return 0.4 + n_bands * (0.17 * n_layers + (0.75 if are_written else 0.35))


def draw_bands(seen: Floats, names: Sequence[str], into: Any) -> list[Axes]:
    """Draws bands one below another, so that all names can be written; a text too long for that is
    one band without names. Dark where something is there, light where it is gone.

    seen: (layer, name), from 0 to 1
    """
    n_bands, are_written = _n_bands(len(names))
    bands = list(into.subplots(n_bands, 1, squeeze=False)[:, 0])
    colours = LinearSegmentedColormap.from_list("there", [GONE, FOR_LINE])
    layers, width = np.arange(len(seen)), ceil(len(names) / n_bands)
    for number, ax in enumerate(bands):
        here = slice(number * width, (number + 1) * width)
        mesh = ax.pcolormesh(seen[:, here], cmap=colours, vmin=0, vmax=1, edgecolors="white")
        mesh.set_linewidth(0.5 if width <= 4 * N_ABREAST else 0)
        ax.invert_yaxis()
        ax.set_yticks(layers + 0.5, [str(layer + 1) for layer in layers])
        ax.set_ylabel("layer", fontsize=8)
        shown = [drawable(name) for name in names[here]] if are_written else []
        ax.set_xticks(np.arange(len(shown)) + 0.5, shown, rotation=90, parse_math=False)
        ax.tick_params(length=0, labelsize=7)
        ax.spines[:].set_visible(False)
        # a short text gets no wider columns than it needs
        ax.set_xlim(0, max(width, N_ABREAST // 2))
    return bands


def _n_bands(n_names: int) -> tuple[int, bool]:
    """Chooses the number of bands, all about as long, and whether names are written."""
    are_written = n_names <= _MOST_BANDS * N_ABREAST
    return (max(ceil(n_names / N_ABREAST), 1) if are_written else 1), are_written
