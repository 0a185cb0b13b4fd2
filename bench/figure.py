"""Pictures of a bench: where the time of a text goes, and how cost grows with length, batch and
cores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from bench.benchmark import OWN
from bench.lines import Line
from bench.profile import PARTS
from litotes.core.errors import UserError
from litotes.core.figures import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PART_COLOURS = {
    "tokenizing": "#E69F00",
    "embeddings": "#F0E442",
    "projections": "#56B4E9",
    "attention": "#0072B2",
    "feed_forward": "#009E73",
    "selection": "#D55E00",
    "head": "#CC79A7",
    "other": "#BBBBBB",
    "around": "#EEEEEE",
}
"""From the palette of Okabe and Ito, in the order of PARTS; they stand in that order in every bar
too.
"""

N_LENGTHS = 3
"""Lengths whose parts are drawn: a short text, a usual one and a long one."""


@dataclass(frozen=True)
class Pen:
    """How one line is drawn: a colour for who it is, dashes for int8."""

    colour: str
    dashes: str
    marker: str


PENS = {
    "hf": Pen("#777777", "-", "s"),
    "ort-fp32": Pen("#D55E00", "-", "o"),
    "ort-int8": Pen("#D55E00", "--", "o"),
    "litotes-packed": Pen("#CC79A7", "-", "D"),
    "litotes-dense": Pen("#0072B2", "-", "^"),
    "litotes-dense-int8": Pen("#0072B2", "--", "^"),
    "litotes-pruned": Pen("#009E73", "-", "v"),
    "litotes-pruned-int8": Pen("#009E73", "--", "v"),
}


def parts_figure(lines: Sequence[Line]) -> Figure:
    """Bars of milliseconds by part, for our four files, at a short, a usual and a long length, each
    on a scale of its own.
    """
    by_length = _by_number([line for line in lines if line.parts], "n")
    lengths = _all_numbers(by_length)
    if not lengths:
        raise UserError(
            "These lines have no parts to draw: measure them with `python -m bench profile`."
        )
    shown = _spread_out(lengths)
    picture = new_picture(4.0 * len(shown), 3.1)
    axes = picture.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    names = [name for name in OWN if name in by_length]
    for length, ax in zip(shown, axes, strict=True):
        _stack(ax, {name: by_length[name][length].parts or {} for name in names})
        ax.set_title(f"{length} pieces", fontsize=11)
        ax.set_xlabel("milliseconds, one thread")
    order = [part.replace("_", "-") for part in PARTS]
    _legend(picture, axes[:1], order, most_columns=len(order))
    return picture


def _spread_out(lengths: Sequence[int]) -> list[int]:
    """A few of the sorted lengths, the longest among them."""
    last = len(lengths) - 1
    return sorted({lengths[round(n * last / N_LENGTHS)] for n in range(1, N_LENGTHS + 1)})


def length_figure(lines: Sequence[Line]) -> Figure:
    """Milliseconds of one text against its pieces, both in powers of two; and the same by piece,
    where a flat line is linear cost.
    """
    found = {name: points for name, points in _by_number(lines, "n").items() if name in PENS}
    if not found:
        raise UserError(
            "These lines have no lengths to draw: measure them with `python -m bench profile`."
        )
    picture = new_picture(9.0, 4.2)
    by_text, by_piece = picture.subplots(1, 2)
    for name, points in found.items():
        lengths = sorted(points)
        _curve(by_text, name, lengths, [points[length].ms for length in lengths])
        _curve(by_piece, name, lengths, [1000 * points[length].ms / length for length in lengths])
    for ax in (by_text, by_piece):
        _powers_of_two(ax, _all_numbers(found))
        ax.set_xlabel("pieces of the text")
    by_text.set_ylabel("milliseconds a text, one thread")
    by_piece.set_ylabel("microseconds a piece, one thread")
    by_text.set_yscale("log")
    by_text.yaxis.set_major_formatter("{x:g}")
    by_piece.set_ylim(bottom=0)
    _legend(picture, [by_text], list(PENS))
    return picture


def growth_figure(lines: Sequence[Line]) -> Figure:
    """Texts a second against the size of a batch, and against the number of workers."""
    batches, cores = _by_number(lines, "b"), _by_number(lines, "c")
    if not batches or not cores:
        raise UserError(
            "These lines have no batches to draw: measure them with `python -m bench growth`."
        )
    picture = new_picture(9.0, 4.2)
    left, right = picture.subplots(1, 2, sharey=True)
    _draw_growth(left, batches, "texts in a batch, all cores")
    _draw_growth(right, cores, "workers of one thread")
    left.set_ylim(bottom=0)
    left.set_ylabel("texts a second")
    _legend(picture, [left, right], list(PENS))
    return picture


def _draw_growth(ax: Axes, found: Mapping[str, Mapping[int, Line]], what: str) -> None:
    for name, points in found.items():
        sizes = sorted(points)
        _curve(ax, name, sizes, [points[size].per_second for size in sizes])
    _powers_of_two(ax, _all_numbers(found))
    ax.set_xlabel(what)


def _all_numbers(found: Mapping[str, Mapping[int, Line]]) -> list[int]:
    return sorted(set(chain.from_iterable(found.values())))


def _by_number(lines: Sequence[Line], letter: str) -> dict[str, dict[int, Line]]:
    """Lines called `NAME-n64` by their name and their number."""
    found: dict[str, dict[int, Line]] = {}
    for line in lines:
        match = re.fullmatch(rf"(.+)-{letter}(\d+)", line.name)
        if match:
            found.setdefault(match[1], {})[int(match[2])] = line
    return found


def _stack(ax: Axes, bars: Mapping[str, Mapping[str, float]]) -> None:
    for place, parts in enumerate(bars.values()):
        left = 0.0
        for part in PARTS:
            if part in parts:
                _bar(ax, place, part, left, parts[part])
                left += parts[part]
        ax.text(left, place, f" {left:.3g}", va="center", fontsize=8)
    ax.set_yticks(range(len(bars)), [name.removeprefix("litotes-") for name in bars])
    ax.invert_yaxis()
    # room for the numbers
    ax.set_xlim(0, 1.16 * max(sum(parts.values()) for parts in bars.values()))
    hide_frame(ax)


def _bar(ax: Axes, place: int, part: str, left: float, width: float) -> None:
    label, colour = part.replace("_", "-"), PART_COLOURS[part]
    ax.barh(place, width, left=left, color=colour, edgecolor=INK, linewidth=0.2, label=label)


def _curve(ax: Axes, name: str, places: Sequence[int], values: Sequence[float]) -> None:
    pen = PENS[name]
    ax.plot(
        places,
        values,
        pen.dashes,
        color=pen.colour,
        marker=pen.marker,
        markersize=4,
        linewidth=1.4,
        label=name,
    )


def _powers_of_two(ax: Axes, ticks: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    hide_frame(ax)


def _legend(
    picture: Figure, axes: Sequence[Axes], order: Sequence[str], *, most_columns: int = 4
) -> None:
    """Below the picture, what the axes show, in the given order."""
    drawn: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        drawn |= dict(zip(labels, handles, strict=True))
    known = {name: drawn[name] for name in order if name in drawn}
    picture.legend(
        known.values(),
        known.keys(),
        loc="outside lower center",
        ncols=min(most_columns, len(known)),
        frameon=False,
        fontsize=8,
    )


def hide_frame(ax: Axes) -> None:
    """Leaves the two axes."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def new_picture(width: float, height: float) -> Figure:
    """Width and height in inches."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    return Figure(figsize=(width, height), layout="constrained")
