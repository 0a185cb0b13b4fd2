"""An experiment's tables as heatmaps, the paper's beside ours, all on the one colour scale that
every table of macro-F1 has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from litotes.report.heatmap import INCHES, Heatmap, draw
from litotes.study.results import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ABREAST = 3
"""Tables side by side; what is wider cannot be read on paper."""

_LETTER = 0.085  # inches of a letter in names and titles
_AROUND = 1.2  # inches for title, names of columns and their label


def figure(panels: Sequence[Panel], *, row_label: str) -> Figure:
    """All tables of an experiment, a row of them for each task and test; `row_label` says what
    their rows are.
    """
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    names = {panel.title: panel.title_among(panels) for panel in panels}
    bands = [band for together in _by_test(panels) for band in _bands(together, names, row_label)]
    n_abreast = max(map(len, bands))
    n_columns = max(len(shown.columns) for band in bands for shown in band)
    n_letters = max(len(row) for band in bands for shown in band for row in shown.rows)
    width = n_abreast * (INCHES * n_columns + _LETTER * n_letters + 0.5) + 0.9
    heights = [INCHES * max(len(shown.rows) for shown in band) + _AROUND for band in bands]
    picture = Figure(figsize=(width, sum(heights)), layout="constrained")
    axes = picture.subplots(len(bands), n_abreast, squeeze=False, height_ratios=heights)
    images = []
    for band, row in zip(bands, axes, strict=True):
        images += [draw(shown, ax) for shown, ax in zip(band, row, strict=False)]
        for ax in row[len(band) :]:
            ax.set_axis_off()
    bar = picture.colorbar(
        images[-1], ax=axes, shrink=min(0.9, 3.0 / sum(heights)), aspect=18, pad=0.02
    )
    bar.set_label("macro-F1")
    bar.outline.set_visible(False)
    return picture


def _by_test(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    for key in dict.fromkeys((panel.table.task, panel.tested_on) for panel in panels):
        yield [panel for panel in panels if (panel.table.task, panel.tested_on) == key]


def _bands(
    panels: Sequence[Panel], names: Mapping[str, str], row_label: str
) -> Iterator[list[Heatmap]]:
    """Rows of heatmaps: the paper's below ours; where it has the same one for all of ours, once,
    and beside them if there is room.
    """
    ours = [_ours(panel, names[panel.title], row_label) for panel in panels]
    if (
        len(panels) > 1
        and panels[0].paper
        and all(panel.paper == panels[0].paper for panel in panels)
    ):
        papers = [
            _papers(
                panels[0],
                ", ".join(filter(None, (panels[0].tested_on, panels[0].table.task))),
                row_label,
            )
        ]
    else:
        papers = [
            _papers(panel, names[panel.title], row_label)
            for panel in panels
            if any(panel.paper for panel in panels)
        ]
    if len(papers) == 1 and len(ours) < N_ABREAST:
        yield [*ours, *papers]
        return
    for start in range(0, len(ours), N_ABREAST):
        yield ours[start : start + N_ABREAST]
        if papers[start : start + N_ABREAST]:
            yield papers[start : start + N_ABREAST]


def _ours(panel: Panel, name: str, row_label: str) -> Heatmap:
    table = panel.table
    small = {
        (cell.trained_on, cell.tested_on): f"{cell.interval[0]:.2f}–{cell.interval[1]:.2f}"
        for cell in table.cells
    }
    failed = {(row, column): "failed" for row in panel.failed for column in table.columns}
    values = {(cell.trained_on, cell.tested_on): cell.macro_f1 for cell in table.cells}
    return Heatmap(
        _title("ours", name, panel),
        row_label,
        table.rows,
        table.columns,
        values,
        {**failed, **small},
    )


def _papers(panel: Panel, name: str, row_label: str) -> Heatmap:
    table = panel.table
    none = {(row, column): "not printed" for row in table.rows for column in table.columns}
    small = none | dict.fromkeys(panel.paper, "")
    return Heatmap(
        _title("the paper's", name, panel), row_label, table.rows, table.columns, panel.paper, small
    )


def _title(whose: str, name: str, panel: Panel) -> str:
    return fill(
        f"{whose}: {name}", width=max(16, int((INCHES * len(panel.table.columns) + 0.5) / _LETTER))
    )
