"""attribution: the words that push surely towards each label, with their intervals, and how far the
methods agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from litotes.inside.attribution.measure import Push, Pushes
from litotes.inside.drawing.canvas import LETTER_WIDTH, Box, Canvas, new_canvas
from litotes.inside.drawing.marks import NamedMean, draw_ranking, height_of, label_width
from litotes.report.figure import readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 9.6  # inches
_CELL = 0.46  # inches: a number of two decimals fits into it


def draw_figure(result: Pushes) -> Figure:
    """A row for each pair of labels, then the table of methods."""
    panels = list(_panels(result))
    rows = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    heights = [height_of(max(2, *(len(words) for _, words in row))) for row in rows]
    table = _CELL * len(result.compared) + 0.8 if result.compared else 0.0
    on = new_canvas(_WIDTH, sum(heights) + table)
    top = 0.0
    for row, height in zip(rows, heights, strict=True):
        for number, (title, words) in enumerate(row):
            _draw_words(title, words, on, Box(number * _WIDTH / 2, top, _WIDTH / 2, height))
        top += height
    if table:
        _draw_agreement(result, on, top=top + 0.4)
    return on.picture


def _panels(result: Pushes) -> Iterator[tuple[str, Sequence[Push]]]:
    for task, labels in result.towards.items():
        yield from ((f"towards {label} ({task})", words) for label, words in labels.items())


def _draw_words(title: str, words: Sequence[Push], on: Canvas, box: Box) -> None:
    marks = [
        NamedMean(
            push.word,
            push.weight,
            (push.weight - push.half_width, push.weight + push.half_width),
            note=f"n {push.n}",
        )
        for push in words
    ]
    ax = on.chart(box, left=label_width(marks) if marks else 0.4)
    ax.set_title(title, fontsize=9, parse_math=False)
    if not marks:
        ax.text(
            0.5,
            0.5,
            "no word does so surely",
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=8,
        )
        ax.set_axis_off()
        return
    draw_ranking(marks, ax)
    ax.set_xlim(left=0)
    ax.set_xlabel("mean weight with its 95 % interval", fontsize=8)


def _draw_agreement(result: Pushes, on: Canvas, *, top: float) -> None:
    """Numbers in cells: there are few methods, and the second decimal is worth reading."""
    n, left = len(result.compared), _names(result)
    ax = on.axes(Box(left, top, _CELL * n, _CELL * n))
    values = [[math.nan if value is None else value for value in row] for row in result.agreement]
    lowest = min((value for row in values for value in row if not math.isnan(value)), default=0.0)
    image = ax.imshow(values, cmap="YlGnBu", vmin=min(lowest, 0.0), vmax=1)
    ax.set_yticks(
        range(n),
        [f"{name}  {place + 1}" for place, name in enumerate(result.compared)],
        fontsize=8,
        parse_math=False,
    )
    # names would have to lean
    ax.set_xticks(range(n), [str(place + 1) for place in range(n)], fontsize=8)
    ax.tick_params(length=0)
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            shown = "–" if math.isnan(value) else f"{value:.2f}"
            colour = "black" if math.isnan(value) else readable(image, value)
            ax.text(column, row, shown, ha="center", va="center", fontsize=8, color=colour)
    ax.set_title("Spearman’s correlation between methods", fontsize=9)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _names(result: Pushes) -> float:
    """Inches of the longest name of a method."""
    return LETTER_WIDTH * max(map(len, result.compared)) + 0.4
