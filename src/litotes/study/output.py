"""A study's report as files: report.json, timing.json, report.html and the figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.progress import Watch
from litotes.core.storage import write_bytes, write_json, write_text
from litotes.data import coverage_figure
from litotes.evaluation import reliability_figure
from litotes.report.figure import render_figure
from litotes.report.html import inline, slugs
from litotes.study import figure as study_figure
from litotes.study.page import Pictures, html
from litotes.study.report import Report, table_json
from litotes.study.timing import Timing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(report: Report, timing: Timing, pictures: Pictures, out: Path) -> None:
    write_json(out / "report.json", report.as_json())
    write_json(out / "timing.json", timing.as_json())
    write_text(out / "report.html", html(report, timing, pictures))


def draw_pictures(report: Report, folder: Path, watch: Watch) -> Pictures:
    """Draws all figures, writes each as SVG and PNG with its numbers as JSON, and returns them."""
    drawn = [section for section in report.sections if section.results.tables]
    confidences = [one for section in drawn for one in section.confidences]
    n_figures = len(drawn) + len(report.vocabularies) + len(confidences)
    save = _FigureWriter(folder, n_figures, watch)
    tables, vocabularies, diagrams = {}, {}, {}
    for section in drawn:
        own = section.results.tables
        row_label = _row_label(section.results.experiment.settings.rows)
        picture = study_figure.figure(own, row_label=row_label)
        content = [table_json(table) for table in own]
        tables[section.name] = save(section.name, picture, content)
    for one in report.vocabularies:
        name, picture = one.settings.name, coverage_figure.figure(one.coverage)
        vocabularies[name] = save(f"coverage {name}", picture, one.as_json())
    for confidence in confidences:
        before, after = confidence.before.reliability, confidence.after.reliability
        picture = reliability_figure.figure({"before": before, "after": after})
        key = confidence.experiment, confidence.task
        diagrams[key] = save(" ".join(("calibration", *key)), picture, confidence.as_json())
    return Pictures(tables, vocabularies, diagrams)


class _FigureWriter:
    """Writes one figure after the other, each under a name of its own."""

    def __init__(self, folder: Path, n_figures: int, watch: Watch) -> None:
        self.folder, self.n_figures, self.watch = folder, n_figures, watch
        self.names: list[str] = []

    def __call__(self, title: str, picture: Figure, content: Any) -> str:
        """Returns the figure's SVG for a page."""
        self.names.append(title)
        name = slugs(self.names)[title]
        svg = render_figure(picture, "svg")
        write_bytes(self.folder / f"{name}.svg", svg)
        write_bytes(self.folder / f"{name}.png", render_figure(picture, "png"))
        write_json(self.folder / f"{name}.json", content)
        self.watch("drawing", len(self.names), self.n_figures, title)
        return inline(svg, name)


def _row_label(path: str) -> str:
    """What the rows are: where a model was trained, or how."""
    return "trained on" if path.startswith("data.") else path.rpartition(".")[2]
