"""attribution: the words that push surely towards each label, with their intervals, and how far the
methods agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from litotes.core.figures import INK, text_colour
from litotes.explanation.analyses.attribution.measure import Push, Pushes
from litotes.explanation.analyses.drawing.canvas import LETTER_WIDTH, Box, Canvas, new_canvas
from litotes.explanation.analyses.drawing.marks import (
    NamedMean,
    draw_ranking,
    label_width,
    ranking_height,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 9.6  # inches
_CELL = 0.46  # inches: a number of two decimals fits into it


def draw_figure(result: Pushes) -> Figure:
    """A row for each pair of labels, then the table of methods."""
    panels = list(_panels(result))
    rows = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    heights = [_row_height(row) for row in rows]
    table_height = _CELL * len(result.compared) + 0.8 if result.compared else 0.0
    canvas = new_canvas(_WIDTH, sum(heights) + table_height)
    top = 0.0
    for row, height in zip(rows, heights, strict=True):
        for number, (title, words) in enumerate(row):
            box = Box(number * _WIDTH / 2, top, _WIDTH / 2, height)
            _draw_words(title, words, canvas, box)
        top += height
    if result.compared:
        _draw_agreement(result, canvas, top=top + 0.4)
    return canvas.figure


def _row_height(row: Sequence[tuple[str, Sequence[Push]]]) -> float:
    return ranking_height(max(2, *(len(words) for _, words in row)))


def _panels(result: Pushes) -> Iterator[tuple[str, Sequence[Push]]]:
    for task, labels in result.towards.items():
        for label, words in labels.items():
            yield f"towards {label} ({task})", words


def _draw_words(title: str, words: Sequence[Push], canvas: Canvas, box: Box) -> None:
    means = []
    for push in words:
        interval = (push.weight - push.half_width, push.weight + push.half_width)
        means.append(NamedMean(push.word, push.weight, interval, note=f"n {push.n}"))
    ax = canvas.chart(box, left=label_width(means) if means else 0.4)
    ax.set_title(title, fontsize=9, parse_math=False)
    if not means:
        centred: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
        ax.text(0.5, 0.5, "no word does so surely", fontsize=8, **centred)
        ax.set_axis_off()
        return
    draw_ranking(means, ax)
    ax.set_xlim(left=0)
    ax.set_xlabel("mean weight with its 95 % interval", fontsize=8)


def _draw_agreement(result: Pushes, canvas: Canvas, *, top: float) -> None:
    """Numbers in cells: there are few methods, and the second decimal is worth reading."""
    n, longest = len(result.compared), max(map(len, result.compared))
    ax = canvas.axes(Box(LETTER_WIDTH * longest + 0.4, top, _CELL * n, _CELL * n))
    values = [[math.nan if value is None else value for value in row] for row in result.agreement]
    image = ax.imshow(values, cmap="PuOr", vmin=-1, vmax=1)
    _label_methods(result.compared, ax)
    _write_cells(values, image, ax)
    ax.set_title("Spearman’s correlation between methods", fontsize=9)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _label_methods(methods: Sequence[str], ax: Axes) -> None:
    """Names and numbers on the left, numbers alone below, where names would have to lean."""
    places = range(len(methods))
    names = [f"{name}  {place + 1}" for place, name in enumerate(methods)]
    ax.set_yticks(places, names, fontsize=8, parse_math=False)
    ax.set_xticks(places, [str(place + 1) for place in places], fontsize=8)
    ax.tick_params(length=0)


def _write_cells(values: Sequence[Sequence[float]], image: Any, ax: Axes) -> None:
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            is_known = not math.isnan(value)
            text = f"{value:.2f}" if is_known else "–"
            colour = text_colour(image, value) if is_known else INK
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
