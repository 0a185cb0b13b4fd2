"""How each figure of the tour is drawn from what its chapter's snippets have left.

Weights are drawn as one colour that is the more opaque, the larger they are: 0 is the paper, be it
light or dark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from litotes.core.figures import GAP, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, GREY = "#2084c7", GAP, "#009E73", "#8a949e"
"""Each is told from white and from a dark page, and from the others by colour-blind readers."""
COLOURS = (BLUE, ORANGE, GREEN, GREY)
GRID = "#e5e5e5"
_ABOVE, _BELOW = (0xD5, 0x5E, 0x00), (0x20, 0x84, 0xC7)
_SMALL = 8


def _figure(height: float, *widths: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A picture nine inches wide with axes side by side, as wide as these say."""
    picture = Figure(figsize=(9, height), layout="constrained")
    grid = picture.subplots(rows, len(widths), squeeze=False, width_ratios=widths)
    for ax in grid.flat:
        ax.tick_params(labelsize=9, length=0)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    return picture, list(grid.flat)


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=10.5, pad=8, loc="left", color=INK)


def _lines(ax: Axes, xs: Sequence[float], curves: Mapping[str, Sequence[float]]) -> None:
    marker = "o" if len(xs) <= 12 else ""
    for colour, (name, values) in zip(COLOURS, curves.items(), strict=False):
        ax.plot(xs, values, color=colour, linewidth=2, marker=marker, markersize=4, label=name)
    ax.grid(axis="y", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)


def _legend(ax: Axes, **options: Any) -> None:
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, **options)


def _bars_of(ax: Axes, names: Sequence[str], values: Sequence[float], *, decimals: int = 2) -> None:
    """Bars that lie, the first on top, each with its number."""
    places = range(len(names))
    ax.barh(places, values, color=BLUE, height=0.7)
    for place, value in zip(places, values, strict=True):
        _number(ax, value, place, f"{value:.{decimals}f}")
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.15)


def _number(ax: Axes, value: float, place: float, written: str) -> None:
    """Behind the end of a bar that lies."""
    shift = {"xytext": (4, 0), "textcoords": "offset points"}
    ax.annotate(written, (value, place), va="center", fontsize=9, color=INK, **shift)


def _two_bars(ax: Axes, places: Any, pair: Mapping[str, Sequence[float]]) -> None:
    """Two bars at each place, the second of which is what the figure is about."""
    (first, firsts), (second, seconds) = pair.items()
    ax.bar(places - 0.2, firsts, width=0.38, color=GREY, label=first)
    ax.bar(places + 0.2, seconds, width=0.38, color=BLUE, label=second)


def _map(
    ax: Axes, weights: Any, pieces: Sequence[str] = (), *, above: tuple[int, int, int] = _BELOW
) -> None:
    """A map (query, key), each weight as opaque as it is large. above: the colour of those above 0,
    where some may lie below.
    """
    numbers = np.asarray(weights, dtype=float)
    image = np.zeros((*numbers.shape, 4))
    image[..., :3] = np.where(numbers[..., None] > 0, above, _BELOW) / np.array(255.0)
    image[..., 3] = np.clip(np.abs(numbers) / max(np.abs(numbers).max(), 1e-9), 0, 1)
    ax.imshow(image, interpolation="nearest")
    for side in ax.spines:
        ax.spines[side].set(visible=True, color=GREY, linewidth=0.6)
    ax.set_xticks(range(len(pieces)), pieces, rotation=90, fontsize=_SMALL)
    ax.set_yticks(range(len(pieces)), pieces, fontsize=_SMALL)


def _attention(made: SimpleNamespace) -> Figure:
    picture, (left, right) = _figure(3.7, 1, 1.15)
    _title(left, "what “it” looks at")
    _bars_of(left, made.words, made.weights.tolist())
    _title(right, "the largest of 16 weights, random vectors")
    _lines(right, made.widths, made.largest)
    right.set_xscale("log", base=2)
    right.set_xticks(made.widths, [str(width) for width in made.widths])
    right.set_xlabel("d, the width of queries and keys")
    right.set_ylim(0, 1)
    _legend(right, loc="center left", bbox_to_anchor=(0.45, 0.52))
    return picture


def _transformer(made: SimpleNamespace) -> Figure:
    picture, (left, right) = _figure(3.4, 1.15, 1)
    _title(left, "how far results move when good and bad are swapped")
    places = np.arange(len(made.words))
    _two_bars(left, places, {name: moved.tolist() for name, moved in made.moved.items()})
    left.set_xticks(places, made.words)
    left.set_ylabel("distance")
    _legend(left, loc="upper center")
    _title(right, "mean length of a word's vector")
    _lines(right, range(1, 13), made.lengths)
    right.set_xlabel("before layer")
    right.set_xticks(range(1, 13))
    right.set_ylim(0)
    _legend(right, loc="lower right")
    return picture


def _bert(made: SimpleNamespace) -> Figure:
    picture, (left, right) = _figure(3.2, 1, 1.3)
    _title(left, "what becomes of the pieces")
    _bars_of(left, list(made.shares), list(made.shares.values()), decimals=3)
    _title(right, "loss of a tiny BERT")
    right.plot(made.losses, color=BLUE, linewidth=2)
    for level, name in ((made.uniform, "any piece"), (made.by_frequency, "by frequency")):
        right.axhline(level, color=GREY, linewidth=1.2, linestyle="--")
        right.text(len(made.losses) - 1, level, name, ha="right", va="bottom", fontsize=9)
    right.set_xlabel("step")
    right.set_ylim(0, made.uniform * 1.12)
    return picture


def _family(made: SimpleNamespace) -> Figure:
    picture, (left, right) = _figure(3.7, 1.2, 1)
    _title(left, "weights, millions")
    names, parts = list(made.millions), np.array(list(made.millions.values()))
    places = range(len(names))
    left.barh(places, parts[:, 1], color=BLUE, height=0.7, label="layers and the rest")
    left.barh(
        places, parts[:, 0], left=parts[:, 1], color=ORANGE, height=0.7, label="table of pieces"
    )
    for place, total in zip(places, parts.sum(1), strict=True):
        _number(left, total, place, f"{total:.0f}")
    left.set_yticks(places, names)
    left.invert_yaxis()
    left.set_xlim(0, 235)
    _legend(left, loc="lower right")
    _title(right, "rotary: query · key by distance")
    right.plot(made.by_distance, color=BLUE, linewidth=2)
    right.axhline(0, color=GREY, linewidth=0.8)
    right.set_xlabel("pieces between query and key")
    return picture


def _fine_tuning(made: SimpleNamespace) -> Figure:
    picture, (ax,) = _figure(3.2, 1)
    _title(ax, "accuracy on other texts")
    steps = [4 * (number + 1) for number in range(len(made.frozen))]
    _lines(ax, steps, made.curves)
    ax.axhline(0.5, color=GREY, linewidth=1.2, linestyle="--")
    ax.text(steps[-1] + 0.5, 0.5, "chance", va="center", fontsize=9)
    ax.set_xlabel("step")
    ax.set_ylim(0, 1.05)
    _legend(ax, loc="upper left")
    return picture


def _shows(made: SimpleNamespace) -> Figure:
    picture, (first, second, third, last) = _figure(8.4, 1, 1, rows=2)
    maps = (
        (first, "layer 1, head 3: the piece before", made.previous),
        (second, "layer 2, head 9: the piece after", made.following),
        (third, "layer 3, head 8: [CLS]", made.parked),
    )
    for ax, title, weights in maps:
        _title(ax, title)
        _map(ax, weights, made.pieces)
    _title(last, "mean weight of “it”, layers 4 to 6")
    for number, noun in enumerate(("trophy", "suitcase")):
        values = [made.weight_of_it[noun, ending] for ending in ("big", "small")]
        places = np.arange(2) + 0.36 * number
        last.bar(places, values, width=0.34, color=COLOURS[number], label=noun)
        for place, value in zip(places, values, strict=True):
            last.text(place, value, f"{value:.3f}", ha="center", va="bottom", fontsize=9)
    last.set_xticks(np.arange(2) + 0.18, ["… is too big", "… is too small"])
    last.set_ylim(0, 0.2)
    _legend(last, loc="upper center", ncols=2)
    return picture


def _effective(made: SimpleNamespace) -> Figure:
    picture, (left, middle, right) = _figure(3.5, 1, 1, 1.05)
    _title(left, "weights A")
    _map(left, made.standard, above=_ABOVE)
    _title(middle, "effective weights A⊥")
    _map(middle, made.kept, above=_ABOVE)
    for ax in (left, middle):
        ax.set_xlabel("looked at ([CLS] first)")
        ax.set_ylabel("looks")
    _title(right, "‖A − A⊥‖ / ‖A‖, all heads")
    lengths = list(made.lost_by_length)
    _lines(right, lengths, {"": list(made.lost_by_length.values())})
    right.axvline(32, color=GREY, linewidth=1.2, linestyle="--")
    right.text(31, 0.9, "a head's width", ha="right", fontsize=9)
    right.set_xlabel("pieces of the text")
    right.set_ylim(0, 1)
    return picture


def _sparse(made: SimpleNamespace) -> Figure:
    picture, (left, right) = _figure(3.5, 1.1, 1)
    _title(left, "weight of the first of two keys")
    _lines(left, made.gaps.tolist(), dict(reversed(made.curves.items())))
    left.set_xlabel("its affinity less the other's")
    _legend(left, loc="upper left")
    _title(right, "share of MiniLM's weights above 0")
    _lines(right, range(1, 7), dict(reversed(made.density.items())))
    right.set_xlabel("layer")
    right.set_ylim(0, 1)
    _legend(right, loc="upper right", ncols=3)
    return picture


def _pruning(made: SimpleNamespace) -> Figure:
    picture, (left, right) = _figure(4.6, 1.1, 1)
    _title(left, "pieces that each layer sees")
    pieces, n_layers = made.read.written, len(made.here)
    is_there = np.array([[place in there for there in made.here] for place in range(len(pieces))])
    for place, row in enumerate(is_there):
        left.barh(place, row.sum(), left=0.5, height=0.72, color=BLUE)
    left.set_yticks(range(len(pieces)), pieces, fontsize=9)
    left.set_xticks(range(1, n_layers + 1))
    left.set_xlim(0.5, n_layers + 0.5)
    left.set_xlabel("layer")
    left.invert_yaxis()
    _title(right, "million operations by layer")
    places = np.arange(1, n_layers + 1)
    _two_bars(right, places, made.costs)
    right.set_xlabel("layer")
    right.set_ylim(0, max(made.costs["dense"]) * 1.2)
    _legend(right, loc="upper right", ncols=2)
    return picture


def _decoding(made: SimpleNamespace) -> Figure:
    picture, (left, middle, right) = _figure(3.5, 1, 1, 0.9)
    target = [made.letters[piece] for piece in made.batch.pieces.tolist()]
    source = [made.letters[piece] for piece in made.batch.sources.pieces.tolist()]
    for ax, title, weights, pieces in (
        (left, "attention to the source", made.read, source),
        (middle, "attention to what was written", made.written, target),
    ):
        _title(ax, title)
        _map(ax, weights)
        ax.set_xticks(range(len(pieces)), pieces, fontsize=9)
        ax.set_yticks(range(len(target)), target, fontsize=9)
    _title(right, "share of right letters")
    _lines(right, range(len(made.beams)), made.right)
    right.set_xticks(range(len(made.beams)), [str(n) for n in made.beams])
    right.set_xlabel("beams")
    right.set_ylim(0, 1)
    _legend(right, loc="upper left")
    return picture


DRAWINGS: dict[str, Callable[[SimpleNamespace], Figure]] = {
    "01-attention": _attention,
    "02-transformer": _transformer,
    "03-bert": _bert,
    "04-family": _family,
    "05-fine-tuning": _fine_tuning,
    "06-what-attention-shows": _shows,
    "07-effective-attention": _effective,
    "08-sparse-attention": _sparse,
    "09-pruning": _pruning,
    "10-decoding": _decoding,
}
"""By the name of the chapter's file."""
