"""`litotes study FILE`: a grid of runs and its report; `litotes matrix RECIPE`: trains on each
variety (or any column's value), tests on every one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.tables import print_table
from litotes.core.errors import UserError
from litotes.core.figures import render_figure, save_figure, stacked_figure
from litotes.evaluation.cross_matrix import CrossMatrix
from litotes.study.figures import draw_bands
from litotes.study.matrix import MatrixResult, cross
from litotes.study.plan import read_study
from litotes.study.report import Pictures, report_study, write_report
from litotes.study.runs import execute
from litotes.study.vocabulary import count_vocabularies
from litotes.training.recipe import Recipe


def study(options: argparse.Namespace) -> None:
    if options.on == "ray" and options.workers not in (None, 1):
        raise UserError(
            "--workers is for this machine; on a Ray cluster as many runs work as it has places"
            " for. Leave it out."
        )
    changes = [*options.changes]
    if options.seed is not None:
        changes.append(f"recipe.seed={options.seed}")
    planned = read_study(options.file, changes=changes)
    out = Path(options.out or Path("runs") / options.file.stem)
    vocabularies = count_vocabularies(planned)  # before the long work: a wrong path shows at once
    with progress() as watch:
        runs = execute(
            planned,
            out,
            n_workers=options.workers,
            on=options.on,
            device=options.device,
            watch=watch,
        )
        report = report_study(planned, runs, vocabularies, out, watch=watch)
    say(f"failed: {name}: {reason}" for name, reason in report.failures.items())
    if options.json:
        print_json(report.as_json())
    else:
        for section in report.sections:
            print_lines("", section.name)
            for table in section.results.tables:
                print_matrix(table.matrix, title=table.title)
        files = {"numbers": "report.json", "times": "timing.json", "figures": "figures"}
        print_lines(
            *report.abstract,
            "",
            f"{runs.n_found} of {len(runs.jobs)} runs already complete.",
            _where({"Report": "report.html", **files}, out),
        )
    if report.failures:
        raise UserError(
            f"{len(report.failures)} of {report.n_runs} runs failed; start the command again to try"
            " them again."
        )


def matrix(options: argparse.Namespace) -> None:
    recipe = Recipe.read(options.recipe, changes=options.changes)
    first = recipe.seed if options.seed is None else options.seed
    seeds = range(first, first + options.seeds)
    out = Path(options.out or Path("runs") / options.recipe.stem)
    with progress() as watch:
        result = cross(
            recipe, out, axis=options.by, seeds=seeds, device=options.device, watch=watch
        )
    _write(result, out)
    say(result.notes)
    if options.json:
        print_json(result.as_json())
        return
    for one in result.matrices:
        print_matrix(one, title=one.task, corner="trained on \\ tested on")
    print_lines(*result.words, "")
    files = {"Report": "report.html", "heatmap": "matrix.svg", "numbers": "matrix.json"}
    print_lines(_where(files, out))


def _where(files: dict[str, str], out: Path) -> str:
    return "   ".join(f"{what}: {out / name}" for what, name in files.items())


def _write(result: MatrixResult, out: Path) -> None:
    """The matrices and their heatmap, and the report of the study behind them."""
    heatmaps = [one.heatmap() for one in result.matrices]
    svg = save_figure(out / "matrix", draw_bands([heatmaps]), result.as_json())
    narrow = render_figure(stacked_figure(heatmaps), "svg")
    (section,) = result.report.sections
    pictures: Pictures = {("tables", section.name): svg, ("narrow", section.name): narrow}
    write_report(result.report, result.timing, pictures, out)


def print_matrix(found: CrossMatrix, *, title: str, corner: str = "") -> None:
    """A table of scores with its majority line. corner: what stands above the names of the rows."""
    rows = []
    majority = {cell.tested_on: cell.majority for cell in found.cells}
    for name in found.rows:
        cells = [found.find(name, column) for column in found.columns]
        rows.append((name, *("failed" if cell is None else cell.text() for cell in cells)))
    rows.append(("majority line", *(f"{majority[column]:.3f}" for column in found.columns)))
    print_table((corner, *found.columns), rows, title=f"{title}: macro-F1 (95 % interval)")
