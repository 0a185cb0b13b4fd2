"""change: how alike every attention head is before and after fine-tuning, by layer and by head
(figure 3 of Sun and Marasović).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.inside.change.measure import Change
from litotes.inside.drawing.canvas import Box, new_canvas
from litotes.inside.drawing.head_maps import (
    HeadMap,
    MapGroup,
    draw_groups,
    height_of,
    scale,
    width_of,
)
from litotes.inside.drawing.marks import KINDS, Series, draw_series, legend_above

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOP = 2.6  # inches


def draw_figure(result: Change) -> Figure:
    maps = tuple(
        HeadMap(f"{kind.capitalize()} attention", result.similarity[kind]) for kind in KINDS
    )
    bands = [MapGroup(maps, "cosine, before and after", scale(maps, high=1))]
    on = new_canvas(width_of(bands), _TOP + height_of(bands))
    ax = on.chart(Box(0, 0, on.width, _TOP))
    draw_series(
        {
            kind: Series(result.by_layer[kind], result.by_layer_half_width[kind], look)
            for kind, look in KINDS.items()
        },
        ax,
    )
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("cosine (1: nothing changed)", fontsize=8)
    legend_above(ax)
    draw_groups(bands, on, top=_TOP)
    return on.picture
