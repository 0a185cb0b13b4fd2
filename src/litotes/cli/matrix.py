"""`litotes matrix RECIPE`: trains on each variety (or any column's value), tests on every one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.evaluation.cross_matrix import CrossMatrix
    from litotes.study.matrix import MatrixResult

ABOUT = """\
Trains on each part of a corpus and tests on every part: does a model survive another variety,
or another of your columns? Writes scores, a heatmap and a report; a stopped run goes on.
"""
EXAMPLE = "litotes matrix recipes/quick.toml --by variety --seeds 3 --out runs/quick"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", type=Path, metavar="RECIPE", help="a TOML file; see recipes/")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, e.g. training.epochs=3",
    )
    parser.add_argument(
        "--seeds", type=count, default=1, metavar="N", help="models per row (default 1)"
    )
    parser.add_argument(
        "--by",
        default="variety",
        metavar="WHAT",
        help="what rows and columns are: variety (default), source, cell, or a column of the table",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.study.matrix import cross, describe_matrix
    from litotes.training.recipe import read_recipe

    recipe = read_recipe(options.recipe, changes=options.set)
    first = recipe.seed if options.seed is None else options.seed
    seeds = range(first, first + options.seeds)
    out = Path(options.out) if options.out else Path("runs") / options.recipe.stem
    with progress() as watch:
        result = cross(
            recipe, out, axis=options.by, seeds=seeds, device=options.device, watch=watch
        )
    _write(result, out)
    say(result.notes)
    if options.json:
        print_json(result.as_json())
        return
    for matrix in result.matrices:
        print_matrix(matrix, title=matrix.task, corner="trained on \\ tested on")
        print_lines(describe_matrix(matrix), "")
    print_lines(
        f"Report: {out / 'report.html'}   heatmap: {out / 'matrix.svg'}, {out / 'matrix.png'}  "
        f" numbers: {out / 'matrix.json'}"
    )


def _write(result: MatrixResult, out: Path) -> None:
    """The matrices and their heatmap, and the report of the study behind them."""
    from litotes.core.figures import render_figure, save_figure, stacked_figure
    from litotes.study.figures import draw_bands
    from litotes.study.report import Pictures, write_report

    heatmaps = [matrix.heatmap() for matrix in result.matrices]
    svg = save_figure(out / "matrix", draw_bands([heatmaps]), result.as_json())
    narrow = render_figure(stacked_figure(heatmaps), "svg")
    (section,) = result.report.sections
    pictures: Pictures = {("tables", section.name): svg, ("narrow", section.name): narrow}
    write_report(result.report, result.timing, pictures, out)


def print_matrix(matrix: CrossMatrix, *, title: str, corner: str = "") -> None:
    """A table of scores with its majority line. corner: what stands above the names of the rows."""
    from litotes.cli.display import print_table

    rows = []
    majority = {cell.tested_on: cell.majority for cell in matrix.cells}
    for name in matrix.rows:
        cells = [matrix.find(name, column) for column in matrix.columns]
        rows.append((name, *("failed" if cell is None else cell.text() for cell in cells)))
    rows.append(("majority line", *(f"{majority[column]:.3f}" for column in matrix.columns)))
    print_table((corner, *matrix.columns), rows, title=f"{title}: macro-F1 (95 % interval)")
