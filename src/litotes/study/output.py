"""A study's report as files: report.json, timing.json, report.html and the figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.figures import render_figure, save_figure
from litotes.core.html import inline, slugs
from litotes.core.progress import Watch
from litotes.core.storage import write_json, write_text
from litotes.data import coverage
from litotes.evaluation.reliability import draw_reliability, overlay_risk_coverage
from litotes.study import figure as study_figure
from litotes.study.confidence import Confidence, pooled_curves
from litotes.study.page import Pictures, html
from litotes.study.report import Report, Section, table_json
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
    n_diagrams = sum(len(section.confidences) for section in drawn)
    curves = {section.name: pooled_curves(section.results.tables) for section in drawn}
    n_diagrams += sum(map(len, curves.values()))
    save = _FigureWriter(folder, len(drawn) + len(report.vocabularies) + n_diagrams, watch)
    tables, narrow_tables = {}, {}
    places = slugs([section.name for section in drawn])
    for section in drawn:
        tables[section.name] = _draw_tables(section, save)
        narrow_tables[section.name] = _draw_narrow_tables(section, places[section.name])
    vocabularies = {}
    for one in report.vocabularies:
        name, picture = one.settings.name, coverage.figure(one.coverage)
        vocabularies[name] = save(f"coverage {name}", picture, one.as_json())
    diagrams = {}
    for section in drawn:
        for confidence in section.confidences:
            key = confidence.experiment, confidence.task
            diagrams[key] = _draw_diagram(confidence, save)
    risks = {}
    for experiment, by_task in curves.items():
        for task, own in by_task.items():
            content = {table: curve.as_json() for table, curve in own.items()}
            picture = overlay_risk_coverage(own)
            risks[experiment, task] = save(f"risk {experiment} {task}", picture, content)
    return Pictures(tables, vocabularies, diagrams, narrow_tables, risks)


def _draw_tables(section: Section, save: _FigureWriter) -> str:
    tables = section.results.tables
    row_label = _row_label(section.results.experiment.settings.rows)
    picture = study_figure.figure(tables, row_label=row_label)
    return save(section.name, picture, [table_json(table) for table in tables])


def _draw_narrow_tables(section: Section, name: str) -> str:
    """For the page alone: their numbers are those of the tables."""
    row_label = _row_label(section.results.experiment.settings.rows)
    picture = study_figure.narrow_figure(section.results.tables, row_label=row_label)
    return inline(render_figure(picture, "svg"), f"narrow-{name}")


def _draw_diagram(confidence: Confidence, save: _FigureWriter) -> str:
    before, after = confidence.before.reliability, confidence.after.reliability
    picture = draw_reliability({"before": before, "after": after})
    name = f"calibration {confidence.experiment} {confidence.task}"
    return save(name, picture, confidence.as_json())


class _FigureWriter:
    """Writes one figure after the other, each under a name of its own."""

    def __init__(self, folder: Path, n_figures: int, watch: Watch) -> None:
        self.folder, self.n_figures, self.watch = folder, n_figures, watch
        self.names: list[str] = []

    def __call__(self, title: str, picture: Figure, content: Any) -> str:
        """Returns the figure's SVG for a page."""
        self.names.append(title)
        name = slugs(self.names)[title]
        svg = save_figure(self.folder / name, picture, content)
        self.watch("drawing", len(self.names), self.n_figures, title)
        return inline(svg, name)


def _row_label(path: str) -> str:
    """What the rows are: where a model was trained, or how."""
    return "trained on" if path.startswith("data.") else path.rpartition(".")[2]
