"""An experiment's tables as heatmaps, with the published ones, all on the one colour scale that
every table of macro-F1 has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
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
    """Yields rows of heatmaps, the tables of the same task and test together, then the published
    ones, each once. row_label: what the rows of the tables are.
    """
    for together in grouped(tables, lambda table: table.test).values():
        panels = []
        published: dict[str, Heatmap] = {}  # by what it shows
        for table in together:
            name, columns = table.title_among(tables), table.matrix.columns
            small = {(row, column): "failed" for row in table.failed for column in columns}
            panels.append(table.matrix.heatmap(f"ours: {name}", row_label=row_label, small=small))
            if table.published:
                small = dict.fromkeys(product(table.matrix.rows, columns), "not printed")
                small |= dict.fromkeys(table.published, "")
                own = replace(panels[-1], title="", values=table.published, small=small)
                own = published.get(repr(table.published), own)
                title = f"{own.title}; {name}" if own.title else f"the paper's: {name}"
                published[repr(table.published)] = replace(own, title=title)
        panels += published.values()
        # in pairs, or whole rows of ours, the published ones stand below
        n_abreast = N_ABREAST if len(published) < 2 or len(together) % N_ABREAST == 0 else 2
        for start in range(0, len(panels), n_abreast):
            yield panels[start : start + n_abreast]
