"""An experiment's tables as heatmaps, with the published ones, all on the one colour scale that
every table of macro-F1 has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from litotes.core.figures import (
    INCHES,
    LETTER,
    Heatmap,
    add_colour_bar,
    draw_heatmap,
    new_figure,
    stacked_figure,
)
from litotes.core.values import grouped
from litotes.study.tables import Place, ScoreTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ABREAST = 3
"""Tables side by side; anything wider cannot be read on paper."""

_AROUND = 1.2  # inches for title, names of columns and their label


def draw_tables(tables: Sequence[ScoreTable], *, row_label: str) -> Figure:
    """Draws all tables of an experiment, a row of them for each task and test.

    row_label: what the rows of the tables are.
    """
    bands = list(_all_bands(tables, row_label))
    heatmaps = [one for band in bands for one in band]
    n_abreast = max(map(len, bands))
    heights = [INCHES * max(len(one.rows) for one in band) + _AROUND for band in bands]
    # room for the widest table and the longest name of a row, n times
    n_columns = max(len(one.columns) for one in heatmaps)
    n_letters = max(len(name) for one in heatmaps for name in one.rows)
    width = n_abreast * (INCHES * n_columns + LETTER * n_letters + 0.5) + 0.9
    picture = new_figure(width, sum(heights))
    axes = picture.subplots(len(bands), n_abreast, squeeze=False, height_ratios=heights)
    for band, row in zip(bands, axes, strict=True):
        for heatmap, ax in zip(band, row, strict=False):
            image = draw_heatmap(heatmap, ax)
        for ax in row[len(band) :]:
            ax.set_axis_off()
    add_colour_bar(picture, image, axes.flat, shrink=min(0.9, 3.0 / sum(heights)), aspect=18)
    return picture


def draw_narrow_tables(tables: Sequence[ScoreTable], *, row_label: str) -> Figure:
    """Draws the same one below another, for a phone."""
    return stacked_figure([one for band in _all_bands(tables, row_label) for one in band])


def _all_bands(tables: Sequence[ScoreTable], row_label: str) -> Iterator[list[Heatmap]]:
    """Rows of heatmaps, the tables of the same task and test together, the published ones below
    ours. Where all of ours have the same published one, it is shown once, and in the same row if
    there is room.
    """
    for (task, tested_on), together in grouped(tables, lambda table: table.test).items():
        names = [table.title_among(tables) for table in together]
        ours = [_ours(*one, row_label) for one in zip(together, names, strict=True)]
        published = []
        if any(table.published for table in together):
            if len(together) > 1 and len({repr(table.published) for table in together}) == 1:
                names = [", ".join(filter(None, (tested_on, task)))]
            for table, name in zip(together, names, strict=False):
                if not table.published:
                    continue
                places = [(row, col) for row in table.matrix.rows for col in table.matrix.columns]
                small = dict.fromkeys(places, "not printed") | dict.fromkeys(table.published, "")
                title = f"the paper's: {name}"
                published.append(_heatmap(table, title, row_label, table.published, small))
        if len(published) == 1 and len(ours) < N_ABREAST:
            yield [*ours, *published]
            continue
        for start in range(0, len(ours), N_ABREAST):
            yield ours[start : start + N_ABREAST]
            if published[start : start + N_ABREAST]:
                yield published[start : start + N_ABREAST]


def _ours(table: ScoreTable, name: str, row_label: str) -> Heatmap:
    cells = table.matrix.cells
    small = {(row, column): "failed" for row in table.failed for column in table.matrix.columns}
    small |= {cell.place: f"{cell.interval[0]:.2f}–{cell.interval[1]:.2f}" for cell in cells}
    values = {cell.place: cell.macro_f1 for cell in cells}
    return _heatmap(table, f"ours: {name}", row_label, values, small)


def _heatmap(
    table: ScoreTable,
    title: str,
    row_label: str,
    values: Mapping[Place, float],
    small: Mapping[Place, str],
) -> Heatmap:
    inches = INCHES * len(table.matrix.columns) + 0.5
    title = fill(title, width=max(16, int(inches / LETTER)))
    return Heatmap(title, row_label, table.matrix.rows, table.matrix.columns, values, small)
