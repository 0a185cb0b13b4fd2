"""`litotes distill RECIPE --out RUN`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.training.distillation import DistillRecipe
    from litotes.training.distillation.distill import Point

ABOUT = """\
Trains a small student from the answers of larger teachers, none of which ever teaches a text it
was trained on. Writes a model folder and the frontier of quality against speed.
"""
EXAMPLE = "litotes distill recipes/distill.toml --out runs/student"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recipe", type=Path, metavar="RECIPE", help="a TOML file; see recipes/distill.toml"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, e.g. distill.share=0.7",
    )
    parser.add_argument(
        "--teacher",
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="ready models that teach, in place of teachers trained here",
    )
    parser.add_argument("--layers", type=count, metavar="N", help="layers of the student")
    parser.add_argument(
        "--width", type=count, metavar="N", help="width of the student: its most used columns"
    )
    parser.add_argument(
        "--workers",
        type=count,
        metavar="N",
        help="trainings at the same time (default: 1 on a CPU, as many as fit on a GPU)",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, print_scores, progress, say
    from litotes.training.distillation import carry_out, plan_distillation

    recipe = _read(options)
    out = Path(options.out) if options.out else Path("runs") / f"{options.recipe.stem}-student"
    plan = plan_distillation(recipe, out, device=options.device)
    say([*plan.data.notes, *plan.notes])
    with progress() as watch:
        result = carry_out(plan, n_workers=options.workers, watch=watch)
    say([note for note in result.notes if note not in (*plan.data.notes, *plan.notes)])
    if options.json:
        print_json(result.as_json())
        return
    _print(result.points)
    if result.scores:
        print_scores(result.scores)
    predict = shlex.join(["litotes", "predict", "--model", str(out), "…"])
    print_lines(f"The student is in {out}. Ask it: {predict}")


def _read(options: argparse.Namespace) -> DistillRecipe:
    from litotes.training.distillation import DistillRecipe

    changes = list(options.set)
    if options.seed is not None:
        changes.append(f"seed={options.seed}")
    recipe = DistillRecipe.read(options.recipe, changes=changes)
    given = {"teachers": options.teacher, "layers": options.layers, "width": options.width}
    if options.teacher:
        given["teacher"] = {}  # what the recipe says of teachers to train
    return recipe.changed(
        **{f"distill__{name}": value for name, value in given.items() if value not in (None, [])}
    )


COLUMNS = ("", "layers", "parameters", "texts a second", "macro-F1", "95 % interval")


def _print(points: tuple[Point, ...]) -> None:
    from litotes.cli.display import print_table

    title = "Mean over tasks on the test split; speed on this machine, from pieces to answers"
    print_table(COLUMNS, [_row(point) for point in points], title=title)


def _row(point: Point) -> tuple[str, ...]:
    name = point.name if point.n_models == 1 else f"{point.name}, mean of {point.n_models}"
    score, interval = "", ""
    if point.score is not None:
        low, high = point.score.interval
        score, interval = f"{point.score.macro_f1:.3f}", f"{low:.3f} to {high:.3f}"
    size = f"{point.n_parameters / 1e6:.1f} M"
    return (name, str(point.n_layers), size, f"{point.texts_per_second:.0f}", score, interval)
