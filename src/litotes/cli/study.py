"""`litotes study FILE`: a whole grid of runs, resumable, then one report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.numbers import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from litotes.core.progress import Watch
    from litotes.evaluation.cross_matrix import MatrixCell
    from litotes.study.execute import Executed
    from litotes.study.page import Pictures
    from litotes.study.plan import Study
    from litotes.study.report import Report
    from litotes.study.results import Panel
    from litotes.study.vocabulary import Vocabulary


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a TOML file; see recipes/study_quick.toml"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, e.g. recipe.training.epochs=3",
    )
    parser.add_argument(
        "--workers", type=count, default=1, metavar="N", help="runs at the same time (default 1)"
    )
    parser.add_argument(
        "--on",
        choices=("here", "ray"),
        default="here",
        help="on this machine or on a Ray cluster (default: here)",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, progress, say
    from litotes.core.errors import UserError
    from litotes.study.execute import execute
    from litotes.study.plan import read_study
    from litotes.study.vocabulary import vocabularies

    if options.on == "ray" and options.workers != 1:
        raise UserError(
            "--workers is for this machine; on a Ray cluster as many runs work as it has places"
            " for. Leave it out."
        )
    first = [] if options.seed is None else [f"recipe.seed={options.seed}"]
    study = read_study(options.file, changes=[*options.set, *first])
    out = Path(options.out) if options.out else Path("runs") / options.file.stem
    counted = vocabularies(study)  # before the long work: a wrong path is told at once
    with progress() as watch:
        executed = execute(
            study, out, n_workers=options.workers, on=options.on, device=options.device, watch=watch
        )
        report = _written(study, executed, counted, out, watch)
    say(f"failed: {name}: {reason}" for name, reason in report.failures.items())
    if options.json:
        print_json(report.as_json())
    else:
        _print(report, executed, out)
    if report.failures:
        raise UserError(
            f"{len(report.failures)} of {report.n_runs} runs failed; start the command again to try"
            " them again."
        )


def _written(
    study: Study, executed: Executed, counted: Sequence[Vocabulary], out: Path, watch: Watch
) -> Report:
    """The report and all its files."""
    from litotes.core.storage import write_json, write_text
    from litotes.study.page import html
    from litotes.study.report import make_report
    from litotes.study.results import findings
    from litotes.study.timing import timing

    reasons = {key: str(outcome.error) for key, outcome in executed.failures.items()}
    found = findings(study, executed.jobs, reasons)
    failures = {job.name: reasons[key] for key, job in executed.jobs.items() if key in reasons}
    report = make_report(study, found, counted, n_runs=len(executed.jobs), failures=failures)
    times = timing(found)
    write_json(out / "report.json", report.as_json())
    write_json(out / "timing.json", times.as_json())
    write_text(out / "report.html", html(report, times, _pictures(report, out / "figures", watch)))
    return report


def _pictures(report: Report, folder: Path, watch: Watch) -> Pictures:
    """Draws and writes all figures, each as SVG and PNG with its numbers as JSON, and hands them on
    for the page.
    """
    from litotes.data import coverage_figure as coverage
    from litotes.evaluation import reliability_figure as reliability
    from litotes.study import figure as study
    from litotes.study.page import Pictures
    from litotes.study.report import panel_json

    drawn = [section for section in report.sections if section.findings.panels]
    confidences = [one for section in drawn for one in section.confidences]
    save = _Saver(folder, len(drawn) + len(report.vocabularies) + len(confidences), watch)
    tables, vocabularies, diagrams = {}, {}, {}
    for section in drawn:
        panels = section.findings.panels
        picture = study.figure(
            panels, row_label=_row_label(section.findings.experiment.settings.rows)
        )
        tables[section.name] = save(section.name, picture, [panel_json(panel) for panel in panels])
    for one in report.vocabularies:
        vocabularies[one.settings.name] = save(
            f"coverage {one.settings.name}", coverage.figure(one.coverage), one.as_json()
        )
    for confidence in confidences:
        picture = reliability.figure(
            {"before": confidence.before.reliability, "after": confidence.after.reliability}
        )
        key = confidence.experiment, confidence.task
        diagrams[key] = save(" ".join(("calibration", *key)), picture, confidence.as_json())
    return Pictures(tables, vocabularies, diagrams)


class _Saver:
    """Writes one figure after the other, each under a name that no other has."""

    def __init__(self, folder: Path, n_figures: int, watch: Watch) -> None:
        self.folder, self.n_figures, self.watch = folder, n_figures, watch
        self.names: list[str] = []

    def __call__(self, title: str, picture: Figure, content: Any) -> str:
        """The figure's SVG, to stand in a page."""
        from litotes.core.storage import write_bytes, write_json
        from litotes.report.figure import rendered
        from litotes.report.html import inline, slugs

        self.names.append(title)
        name = slugs(self.names)[title]
        svg = rendered(picture, "svg")
        write_bytes(self.folder / f"{name}.svg", svg)
        write_bytes(self.folder / f"{name}.png", rendered(picture, "png"))
        write_json(self.folder / f"{name}.json", content)
        self.watch("drawing", len(self.names), self.n_figures, title)
        return inline(svg, name)


def _row_label(path: str) -> str:
    """What the rows are: where a model was trained, or how."""
    return "trained on" if path.startswith("data.") else path.rpartition(".")[2]


def _print(report: Report, executed: Executed, out: Path) -> None:
    for section in report.sections:
        print(f"\n{section.name}")
        for panel in section.findings.panels:
            _print_panel(panel)
    print("\n".join(report.abstract) + "\n")
    print(f"{executed.n_found} of {len(executed.jobs)} runs were found done.")
    print(
        f"Report: {out / 'report.html'}   numbers: {out / 'report.json'}   times:"
        f" {out / 'timing.json'}   figures: {out / 'figures'}"
    )


def _print_panel(panel: Panel) -> None:
    from litotes.cli.display import print_table

    columns = panel.table.columns
    rows = [
        (row, *(_shown(panel.table.find(row, column)) for column in columns))
        for row in panel.table.rows
    ]
    majority = {cell.tested_on: cell.majority for cell in panel.table.cells}
    rows.append(("majority line", *(f"{majority[column]:.3f}" for column in columns)))
    print_table(("", *columns), rows, title=f"{panel.title}: macro-F1 (95 % interval)")


def _shown(cell: MatrixCell | None) -> str:
    if cell is None:
        return "failed"
    return f"{cell.macro_f1:.3f} ({cell.interval[0]:.2f}–{cell.interval[1]:.2f})"
