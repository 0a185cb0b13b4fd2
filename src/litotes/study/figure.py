"""An experiment's tables as heatmaps, with the published ones, all on the one colour scale that
every table of macro-F1 has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from litotes.core.figures import INCHES, Heatmap, draw_heatmap, stacked_figure
from litotes.study.tables import ScoreTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_ABREAST = 3
"""Tables side by side; anything wider cannot be read on paper."""

_LETTER = 0.085  # inches of a letter in names and titles
_AROUND = 1.2  # inches for title, names of columns and their label


def figure(tables: Sequence[ScoreTable], *, row_label: str) -> Figure:
    """All tables of an experiment, a row of them for each task and test.

    row_label: what the rows of the tables are.
    """
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    names = {table.title: table.title_among(tables) for table in tables}
    bands: list[list[Heatmap]] = []
    for together in _by_test(tables):
        bands += _bands(together, names, row_label)
    n_abreast = max(map(len, bands))
    heights = [_height(band) for band in bands]
    size = (_width(bands, n_abreast), sum(heights))
    picture = Figure(figsize=size, layout="constrained")
    axes = picture.subplots(len(bands), n_abreast, squeeze=False, height_ratios=heights)
    for band, row in zip(bands, axes, strict=True):
        image = _draw_band(band, row)
    # one colour scale for all: the last image stands for the others
    shrink = min(0.9, 3.0 / sum(heights))
    bar = picture.colorbar(image, ax=axes, shrink=shrink, aspect=18, pad=0.02)
    bar.set_label("macro-F1")
    bar.outline.set_visible(False)
    return picture


def narrow_figure(tables: Sequence[ScoreTable], *, row_label: str) -> Figure:
    """The same one below another, for a phone."""
    names = {table.title: table.title_among(tables) for table in tables}
    heatmaps: list[Heatmap] = []
    for together in _by_test(tables):
        for band in _bands(together, names, row_label):
            heatmaps += band
    return stacked_figure(heatmaps)


def _draw_band(band: Sequence[Heatmap], row: Sequence[Axes]) -> Any:
    """Draws heatmaps side by side, and returns the last image; axes left over stay empty."""
    for heatmap, ax in zip(band, row, strict=False):
        image = draw_heatmap(heatmap, ax)
    for ax in row[len(band) :]:
        ax.set_axis_off()
    return image


def _height(band: Sequence[Heatmap]) -> float:
    """In inches."""
    return INCHES * max(len(heatmap.rows) for heatmap in band) + _AROUND


def _width(bands: Sequence[Sequence[Heatmap]], n_abreast: int) -> float:
    """In inches: room for the widest table and the longest name of a row, n times."""
    n_columns = n_letters = 0
    for band in bands:
        for heatmap in band:
            n_columns = max(n_columns, len(heatmap.columns))
            n_letters = max(n_letters, *map(len, heatmap.rows))
    return n_abreast * (INCHES * n_columns + _LETTER * n_letters + 0.5) + 0.9


def _by_test(tables: Sequence[ScoreTable]) -> Iterator[list[ScoreTable]]:
    """The tables of the same task and test together."""
    groups: dict[tuple[str, str], list[ScoreTable]] = {}
    for table in tables:
        groups.setdefault((table.matrix.task, table.tested_on), []).append(table)
    yield from groups.values()


def _bands(
    tables: Sequence[ScoreTable], names: Mapping[str, str], row_label: str
) -> Iterator[list[Heatmap]]:
    """Rows of heatmaps, the published ones below ours.

    Where all of ours have the same published one, it is shown once, and in the same row if there
    is room.
    """
    ours = [_our_heatmap(table, names[table.title], row_label) for table in tables]
    published = _published_heatmaps(tables, names, row_label)
    if len(published) == 1 and len(ours) < N_ABREAST:
        yield [*ours, *published]
        return
    for start in range(0, len(ours), N_ABREAST):
        yield ours[start : start + N_ABREAST]
        if published[start : start + N_ABREAST]:
            yield published[start : start + N_ABREAST]


def _published_heatmaps(
    tables: Sequence[ScoreTable], names: Mapping[str, str], row_label: str
) -> list[Heatmap]:
    if not any(table.published for table in tables):
        return []
    first = tables[0]
    if len(tables) > 1 and all(table.published == first.published for table in tables):
        name = ", ".join(filter(None, (first.tested_on, first.matrix.task)))
        return [_published_heatmap(first, name, row_label)]
    return [_published_heatmap(table, names[table.title], row_label) for table in tables]


def _our_heatmap(table: ScoreTable, name: str, row_label: str) -> Heatmap:
    matrix = table.matrix
    values: dict[tuple[str, str], float] = {}
    small: dict[tuple[str, str], str] = {}
    for row in table.failed:
        small |= dict.fromkeys([(row, column) for column in matrix.columns], "failed")
    for cell in matrix.cells:
        values[cell.place] = cell.macro_f1
        small[cell.place] = f"{cell.interval[0]:.2f}–{cell.interval[1]:.2f}"
    title = _title("ours", name, table)
    return Heatmap(title, row_label, matrix.rows, matrix.columns, values, small)


def _published_heatmap(table: ScoreTable, name: str, row_label: str) -> Heatmap:
    rows, columns = table.matrix.rows, table.matrix.columns
    small = {(row, column): "not printed" for row in rows for column in columns}
    small |= dict.fromkeys(table.published, "")
    title = _title("the paper's", name, table)
    return Heatmap(title, row_label, rows, columns, table.published, small)


def _title(whose: str, name: str, table: ScoreTable) -> str:
    inches = INCHES * len(table.matrix.columns) + 0.5
    return fill(f"{whose}: {name}", width=max(16, int(inches / _LETTER)))
