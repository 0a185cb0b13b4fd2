"""change: how alike every attention head is before and after fine-tuning, by layer and by head
(figure 3 of Sun and Marasović).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.explanation.analyses.change.measure import Change
from litotes.explanation.analyses.drawing.canvas import Box, new_canvas
from litotes.explanation.analyses.drawing.head_maps import (
    HeadMap,
    MapGroup,
    draw_groups,
    groups_height,
    groups_width,
    scale,
)
from litotes.explanation.analyses.drawing.marks import (
    KIND_STYLES,
    Series,
    draw_series,
    legend_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOP = 2.6  # inches


def draw_figure(result: Change) -> Figure:
    maps = tuple(
        HeadMap(f"{kind.capitalize()} attention", result.similarity[kind]) for kind in result.kinds
    )
    groups = [MapGroup(maps, "cosine, before and after", scale(maps, high=1))]
    canvas = new_canvas(groups_width(groups), _TOP + groups_height(groups))
    _draw_layers(result, canvas.chart(Box(0, 0, canvas.width, _TOP)))
    draw_groups(groups, canvas, top=_TOP)
    return canvas.figure


def _draw_layers(result: Change, ax: Axes) -> None:
    series = {}
    for kind in result.kinds:
        widths = result.by_layer_half_width[kind]
        series[kind] = Series(result.by_layer[kind], widths, KIND_STYLES[kind])
    draw_series(series, ax)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("cosine (1: nothing changed)", fontsize=8)
    legend_above(ax)
