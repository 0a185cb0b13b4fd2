"""`litotes train RECIPE --out RUN`"""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.core.machine import sleep_while_waiting

ABOUT = """\
Trains one model by a recipe and tests it on texts it has not seen. Writes a model folder that
other commands take; a stopped run goes on with --resume.
"""
EXAMPLE = "litotes train recipes/quick.toml --out runs/mine"
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
    parser.add_argument("--resume", action="store_true", help="go on where a stopped run was")


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, print_scores, progress, say
    from litotes.cli.kinds import command_of
    from litotes.training.recipe import read_kind, read_recipe
    from litotes.training.run import train

    train_other_kind = command_of(read_kind(options.recipe, changes=options.set), "train")
    if train_other_kind is not None:
        train_other_kind(options)
        return
    recipe = read_recipe(options.recipe, changes=options.set)
    if options.seed is not None:
        recipe = recipe.changed(seed=options.seed)
    out = out_of(options)
    with progress() as watch:
        result = train(recipe, out, device=options.device, resume=options.resume, watch=watch)
    say(result.notes)
    if options.json:
        print_json(
            {
                "model": str(result.folder),
                "scores": [row.as_json() for row in result.scores],
                "notes": list(result.notes),
            }
        )
        return
    if result.scores:  # a note says why there are none
        print_scores(result.scores)
    ask = f'litotes predict --model {result.folder} "…"'
    print_lines(f"The model is in {result.folder}. Ask it: {ask}")


def out_of(options: argparse.Namespace) -> Path:
    return Path(options.out) if options.out else Path("runs") / f"{options.recipe.stem}-model"
