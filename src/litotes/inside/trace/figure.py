"""trace: the share of pieces every layer sees, the attention heads it uses, and the words that
leave first and last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litotes.inside.drawing.canvas import Box, Canvas, new_canvas
from litotes.inside.drawing.head_maps import HeadMap, MapGroup, draw_group
from litotes.inside.drawing.marks import (
    NamedMean,
    Series,
    draw_ranking,
    draw_series,
    height_of,
    label_width,
)
from litotes.inside.trace.measure import Traces, WordStay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEFT = 4.6  # inches


def draw_figure(result: Traces) -> Figure:
    band = MapGroup((HeadMap("Attention heads in use", result.heads),), "share of texts", (0, 1))
    words = result.first_to_leave if any(word.share < 1 for word in result.first_to_leave) else ()
    bottom = height_of(len(words)) if words else 0.0
    on = new_canvas(_LEFT + band.width, band.height + bottom)
    ax = on.chart(Box(0, 0, _LEFT, band.height))
    draw_series({"kept": Series(result.kept, result.kept_half_width)}, ax)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("share of pieces seen", fontsize=8)
    draw_group(band, on, left=_LEFT, top=0)
    if words:
        _draw_words(result, on, top=band.height)
    return on.picture


def _draw_words(result: Traces, on: Canvas, *, top: float) -> None:
    half = on.width / 2
    for number, (title, words) in enumerate(
        (("First to leave", result.first_to_leave), ("Last to leave", result.last_to_leave))
    ):
        marks = _marks(words)
        ax = on.chart(Box(number * half, top, half, on.height - top), left=label_width(marks))
        draw_ranking(marks, ax)
        ax.set_xlim(-0.02, 1.02)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("share of the layers that see the word", fontsize=8)


def _marks(words: Sequence[WordStay]) -> list[NamedMean]:
    return [NamedMean(word.word, word.share, note=f"n {word.n}") for word in words]
