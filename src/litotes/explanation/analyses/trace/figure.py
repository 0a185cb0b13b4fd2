"""trace: the share of pieces every layer sees, the attention heads it uses, and the words that
leave first and last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.explanation.analyses.drawing.canvas import Box, Canvas, new_canvas
from litotes.explanation.analyses.drawing.head_maps import HeadMap, MapGroup, draw_group
from litotes.explanation.analyses.drawing.marks import (
    NamedMean,
    Series,
    draw_ranking,
    draw_series,
    label_width,
    ranking_height,
)
from litotes.explanation.analyses.trace.measure import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEFT = 4.6  # inches


def draw_figure(result: Traces) -> Figure:
    group = MapGroup((HeadMap("Attention heads in use", result.heads),), "share of texts", (0, 1))
    bottom = ranking_height(len(result.first_to_leave)) if result.ranks_words else 0.0
    canvas = new_canvas(_LEFT + group.width, group.height + bottom)
    _draw_layers(result, canvas.chart(Box(0, 0, _LEFT, group.height)))
    draw_group(group, canvas, left=_LEFT, top=0)
    if result.ranks_words:
        _draw_words(result, canvas, top=group.height)
    return canvas.figure


def _draw_layers(result: Traces, ax: Axes) -> None:
    draw_series({"kept": Series(result.kept, result.kept_half_width)}, ax)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("share of pieces seen", fontsize=8)


def _draw_words(result: Traces, canvas: Canvas, *, top: float) -> None:
    half = canvas.width / 2
    lists = {"First to leave": result.first_to_leave, "Last to leave": result.last_to_leave}
    for number, (title, words) in enumerate(lists.items()):
        stays = [NamedMean(word.word, word.share, note=f"n {word.n}") for word in words]
        box = Box(number * half, top, half, canvas.height - top)
        ax = canvas.chart(box, left=label_width(stays))
        draw_ranking(stays, ax)
        ax.set_xlim(-0.02, 1.02)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("share of the layers that see the word", fontsize=8)
