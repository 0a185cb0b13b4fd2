"""`litotes distill RECIPE --out RUN`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.scores import print_scores
from litotes.cli.tables import print_rows
from litotes.training.distillation import DistillRecipe, carry_out, plan_distillation

POINTS = """\
: {0[name]}
layers: {0[point].n_layers}
parameters: {0[millions]:.1f} M
texts a second: {0[point].texts_per_second:.0f}
macro-F1: {0[point].score.macro_f1:.3f}
95 % interval: {0[point].score.interval:.3f}
"""


def distill(options: argparse.Namespace) -> None:
    changes = [*options.changes]
    if options.seed is not None:
        changes.append(f"seed={options.seed}")
    recipe = DistillRecipe.read(options.recipe, changes=changes)
    given = {name: getattr(options, name) for name in ("teachers", "layers", "width")}
    if options.teachers:
        given["teacher"] = {}  # what the recipe says of teachers to train
    recipe = recipe.changed(
        **{f"distill__{name}": value for name, value in given.items() if value is not None}
    )
    out = Path(options.out or Path("runs") / f"{options.recipe.stem}-student")
    plan = plan_distillation(recipe, out, device=options.device)
    notes = [*plan.data.notes, *plan.notes]
    say(notes)
    with progress() as watch:
        result = carry_out(plan, n_workers=options.workers, watch=watch)
    say([note for note in result.notes if note not in notes])
    if options.json:
        print_json(result.as_json())
        return
    rows = []
    for point in result.points:
        name = point.name if point.n_models == 1 else f"{point.name}, mean of {point.n_models}"
        rows.append({"name": name, "point": point, "millions": point.n_parameters / 1e6})
    title = "Mean over tasks on the test split; speed on this machine, from pieces to answers"
    print_rows(POINTS, rows, title=title)
    if result.scores:
        print_scores(result.scores)
    predict = shlex.join(["litotes", "predict", "--model", str(out), "…"])
    print_lines(f"The student is in {out}. Ask it: {predict}")
