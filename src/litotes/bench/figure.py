"""Pictures of a bench: where the time of a text goes, and how cost grows with length, batch and
cores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litotes.bench.benchmark import OWN
from litotes.bench.lines import Line
from litotes.bench.profile import PARTS
from litotes.core.errors import UserError
from litotes.report.figure import INK

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
    lengths = sorted({length for found in by_length.values() for length in found})
    if not lengths:
        raise UserError(
            "These lines have no parts to draw: measure them with `litotes bench profile`."
        )
    shown = sorted(
        {
            lengths[round(place * (len(lengths) - 1) / N_LENGTHS)]
            for place in range(1, N_LENGTHS + 1)
        }
    )
    picture = _picture(4.0 * len(shown), 3.1)
    axes = picture.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for length, ax in zip(shown, axes, strict=True):
        _stack(
            ax,
            {name: by_length[name][length].parts or {} for name in OWN if name in by_length},
        )
        ax.set_title(f"{length} pieces", fontsize=11)
        ax.set_xlabel("milliseconds, one thread")
    handles, labels = axes[0].get_legend_handles_labels()
    drawn = dict(zip(labels, handles, strict=True))
    ordered = {part.replace("_", "-"): None for part in PARTS}
    known = {name: drawn[name] for name in ordered if name in drawn}
    picture.legend(
        known.values(),
        known.keys(),
        loc="outside lower center",
        ncols=len(known),
        frameon=False,
        fontsize=8,
    )
    return picture


def length_figure(lines: Sequence[Line]) -> Figure:
    """Milliseconds of one text against its pieces, both in powers of two; and the same by piece,
    where a flat line is linear cost.
    """
    found = {name: points for name, points in _by_number(lines, "n").items() if name in PENS}
    if not found:
        raise UserError(
            "These lines have no lengths to draw: measure them with `litotes bench profile`."
        )
    picture = _picture(9.0, 4.2)
    whole, by_piece = picture.subplots(1, 2)
    for name, points in found.items():
        lengths = sorted(points)
        _curve(whole, name, lengths, [points[length].ms for length in lengths])
        _curve(by_piece, name, lengths, [1000 * points[length].ms / length for length in lengths])
    for ax, unit in (
        (whole, "milliseconds a text, one thread"),
        (by_piece, "microseconds a piece, one thread"),
    ):
        _powers_of_two(ax, sorted({length for points in found.values() for length in points}))
        ax.set_xlabel("pieces of the text")
        ax.set_ylabel(unit)
    whole.set_yscale("log")
    whole.yaxis.set_major_formatter("{x:g}")
    by_piece.set_ylim(bottom=0)
    _legend(picture, whole)
    return picture


def growth_figure(lines: Sequence[Line]) -> Figure:
    """Texts a second against the size of a batch, and against the number of workers, on one scale."""
    batches, cores = _by_number(lines, "b"), _by_number(lines, "c")
    if not batches or not cores:
        raise UserError(
            "These lines have no batches to draw: measure them with `litotes bench growth`."
        )
    picture = _picture(9.0, 4.2)
    axes = picture.subplots(1, 2, sharey=True)
    for ax, found, what in zip(
        axes,
        (batches, cores),
        ("texts in a batch, all cores", "workers of one thread"),
        strict=True,
    ):
        for name, points in found.items():
            sizes = sorted(points)
            _curve(ax, name, sizes, [points[size].per_second for size in sizes])
        _powers_of_two(ax, sorted({size for points in found.values() for size in points}))
        ax.set_xlabel(what)
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel("texts a second")
    _legend(picture, *axes)
    return picture


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
        for part in (part for part in PARTS if part in parts):
            ax.barh(
                place,
                parts[part],
                left=left,
                color=PART_COLOURS[part],
                edgecolor=INK,
                linewidth=0.2,
                label=part.replace("_", "-"),
            )
            left += parts[part]
        ax.text(left, place, f" {left:.3g}", va="center", fontsize=8)
    ax.set_yticks(range(len(bars)), [name.removeprefix("litotes-") for name in bars])
    ax.invert_yaxis()
    # room for the numbers
    ax.set_xlim(0, 1.16 * max(sum(parts.values()) for parts in bars.values()))
    _plain(ax)


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
    _plain(ax)


def _legend(picture: Figure, *axes: Axes) -> None:
    drawn = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    known = {name: drawn[name] for name in PENS if name in drawn}
    picture.legend(
        known.values(),
        known.keys(),
        loc="outside lower center",
        ncols=min(4, len(known)),
        frameon=False,
        fontsize=8,
    )


def _plain(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _picture(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    return Figure(figsize=(width, height), layout="constrained")
