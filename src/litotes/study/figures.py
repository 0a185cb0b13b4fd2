"""An experiment's tables as heatmaps, with the published ones, all on the one colour scale that
every table of macro-F1 has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING

from litotes.core.figures import (
    INCHES,
    LETTER,
    Heatmap,
    add_colour_bar,
    draw_heatmap,
    new_figure,
)
from litotes.core.registry import grouped
from litotes.study.tables import ScoreTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ABREAST = 3
"""Tables side by side; anything wider cannot be read on paper."""

_AROUND = 1.2  # inches for title, names of columns and their label


def draw_bands(bands: Sequence[Sequence[Heatmap]]) -> Figure:
    """Draws rows of heatmaps, one row below another."""
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
            inches = INCHES * len(heatmap.columns) + 0.5
            title = fill(heatmap.title, width=max(16, int(inches / LETTER)))
            image = draw_heatmap(replace(heatmap, title=title), ax)
        for ax in row[len(band) :]:
            ax.set_axis_off()
    add_colour_bar(picture, image, axes.flat, shrink=min(0.9, 3.0 / sum(heights)), aspect=18)
    return picture


def bands_of(tables: Sequence[ScoreTable], *, row_label: str) -> Iterator[list[Heatmap]]:
    """Rows of heatmaps, the tables of the same task and test together, the published ones below
    ours. Where all of ours have the same published one, it is shown once, and in the same row if
    there is room.

    row_label: what the rows of the tables are.
    """
    for (task, tested_on), together in grouped(tables, lambda table: table.test).items():
        names = [table.title_among(tables) for table in together]
        ours, published = [], []
        for table, name in zip(together, names, strict=True):
            columns = table.matrix.columns
            small = {(row, column): "failed" for row in table.failed for column in columns}
            ours.append(table.matrix.heatmap(f"ours: {name}", row_label=row_label, small=small))
        if len(together) > 1 and len({repr(table.published) for table in together}) == 1:
            names = [", ".join(filter(None, (tested_on, task)))]
        for table, name, own in zip(together, names, ours, strict=False):
            if table.published:
                small = {(row, column): "not printed" for row in own.rows for column in own.columns}
                small |= dict.fromkeys(table.published, "")
                title = f"the paper's: {name}"
                published.append(replace(own, title=title, values=table.published, small=small))
        if len(published) == 1 and len(ours) < N_ABREAST:
            yield [*ours, *published]
            continue
        for start in range(0, len(ours), N_ABREAST):
            yield ours[start : start + N_ABREAST]
            if published[start : start + N_ABREAST]:
                yield published[start : start + N_ABREAST]
