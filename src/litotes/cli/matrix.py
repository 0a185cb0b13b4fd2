"""`litotes matrix RECIPE`: trains on each variety, tests on every variety."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count

if TYPE_CHECKING:
    from litotes.evaluation.cross_matrix import CrossMatrix


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
        choices=("variety", "source", "cell"),
        default="variety",
        help="what rows and columns are",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, progress, say
    from litotes.core.storage import write_bytes, write_json, write_text
    from litotes.data.sources import load
    from litotes.evaluation.matrix_figure import figure
    from litotes.report.figure import rendered
    from litotes.study.matrix import cross
    from litotes.study.matrix_report import html_report, in_words
    from litotes.training.recipe import read_recipe

    recipe = read_recipe(options.recipe, changes=options.set)
    first = recipe.seed if options.seed is None else options.seed
    out = Path(options.out) if options.out else Path("runs") / options.recipe.stem
    with progress() as watch:
        study = cross(
            recipe,
            out,
            axis=options.by,
            seeds=range(first, first + options.seeds),
            device=options.device,
            watch=watch,
        )
    write_json(out / "matrix.json", study.as_json())
    picture = figure(study.matrices)
    svg = rendered(picture, "svg")
    write_bytes(out / "matrix.svg", svg)
    write_bytes(out / "matrix.png", rendered(picture, "png"))
    write_text(
        out / "report.html", html_report(study, load(recipe.data.source), picture=svg.decode())
    )
    say(study.notes)
    if options.json:
        print_json(study.as_json())
        return
    for matrix in study.matrices:
        _print(matrix)
        print(in_words(matrix) + "\n")
    print(
        f"Report: {out / 'report.html'}   heatmap: {out / 'matrix.svg'}, {out / 'matrix.png'}  "
        f" numbers: {out / 'matrix.json'}"
    )


def _print(matrix: CrossMatrix) -> None:
    from litotes.cli.display import print_table

    rows = []
    for trained_on in matrix.rows:
        cells = [matrix.cell(trained_on, tested_on) for tested_on in matrix.columns]
        rows.append(
            (
                trained_on,
                *(
                    f"{cell.macro_f1:.3f} ({cell.interval[0]:.2f}–{cell.interval[1]:.2f})"
                    for cell in cells
                ),
            )
        )
    majority = [matrix.cell(matrix.rows[0], name).majority for name in matrix.columns]
    rows.append(("majority line", *(f"{value:.3f}" for value in majority)))
    print_table(
        ("trained on \\ tested on", *matrix.columns),
        rows,
        title=f"{matrix.task}: macro-F1 (95 % interval)",
    )
