"""token_types: what [CLS] gives to each type of piece, and what all others give to [CLS] and [SEP]
(figures 1, 5 and 6 of the paper).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litotes.inside.drawing.canvas import Box, new_canvas
from litotes.inside.drawing.head_maps import (
    HeadMap,
    MapGroup,
    draw_groups,
    height_of,
    scale,
    width_of,
)
from litotes.inside.drawing.marks import KINDS, Series, draw_series
from litotes.inside.means import Number
from litotes.inside.token_types.measure import SPECIAL, TokenTypes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# inches: of all panels across; of one down; for the key above them
_WIDTH, _HEIGHT, _KEY = 9.6, 2.1, 0.25
_ABREAST = 3


def draw_figure(result: TokenTypes) -> Figure:
    bands = [_band(result, name) for name in SPECIAL]
    n_rows = -(-len(result.types) // _ABREAST)
    top = _KEY + n_rows * _HEIGHT
    on = new_canvas(max(_WIDTH, width_of(bands)), top + height_of(bands))
    limits = _limits(result)
    for number, name in enumerate(result.types):
        row, column = divmod(number, _ABREAST)
        width = on.width / _ABREAST
        ax = on.chart(Box(column * width, _KEY + row * _HEIGHT, width, _HEIGHT))
        series = {
            kind: Series(
                result.from_first[kind][number], result.from_first_half_width[kind][number], look
            )
            for kind, look in KINDS.items()
        }
        draw_series(series, ax, joined=False, most_numbers=12)
        ax.set_ylim(*limits)
        ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
        ax.set_title(f"{name} (n {result.n_with[name]})", fontsize=9)
        ax.set_xlabel("attention head", fontsize=8)
        ax.set_ylabel("weight" if not column else "", fontsize=8)
    on.picture.legend(
        *ax.get_legend_handles_labels(),
        loc="upper center",
        bbox_to_anchor=(0.5, 1),
        ncols=2,
        frameon=False,
        fontsize=8,
    )
    draw_groups(bands, on, top=top)
    return on.picture


def _band(result: TokenTypes, name: str) -> MapGroup:
    maps = tuple(HeadMap(f"To {name}, {kind}", result.from_others[name][kind]) for kind in KINDS)
    return MapGroup(maps, "weight, mean over other pieces", scale(maps, low=0, step=0.05))


def _limits(result: TokenTypes) -> tuple[float, float]:
    """One scale for all types, with every interval inside."""
    ends = [0.0, 0.1]
    for kind in KINDS:
        for values, widths in zip(
            result.from_first[kind], result.from_first_half_width[kind], strict=True
        ):
            ends += _ends(values, widths)
    low, high = min(ends), max(ends)
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _ends(values: Sequence[Number], widths: Sequence[Number]) -> list[float]:
    known = [
        (value, width or 0.0)
        for value, width in zip(values, widths, strict=True)
        if value is not None
    ]
    return [value + sign * width for value, width in known for sign in (-1, 1)]
