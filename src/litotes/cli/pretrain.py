"""`litotes pretrain RECIPE --out ENCODER`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.training.course import Run

ABOUT = """\
Teaches an encoder to guess hidden pieces of texts that need no labels, from where it is or from
random weights. Writes an encoder folder that `litotes train` and transformers take.
"""
EXAMPLE = "litotes pretrain recipes/pretrain.toml --set data.source=texts.txt --out runs/encoder"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recipe", type=Path, metavar="RECIPE", help="a TOML file; see recipes/pretrain.toml"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, e.g. training.epochs=3; see `litotes list pretraining`",
    )
    parser.add_argument("--resume", action="store_true", help="go on where a stopped run was")


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, progress, say
    from litotes.core.figures import render_figure
    from litotes.core.storage import write_bytes
    from litotes.training.pretraining.course import draw_curve
    from litotes.training.recipe import PretrainRecipe
    from litotes.training.run import train

    recipe = PretrainRecipe.read(options.recipe, changes=options.set)
    if options.seed is not None:
        recipe = recipe.model_copy(update={"seed": options.seed})
    out = Path(options.out) if options.out else Path("runs") / f"{options.recipe.stem}-encoder"
    with progress() as watch:
        result = train(recipe, out, device=options.device, resume=options.resume, watch=watch)
    curve = draw_curve(result.scores["history"], unigram=result.scores["unigram"])
    write_bytes(out / "perplexity.svg", render_figure(curve, "svg"))
    say(result.notes)
    if options.json:
        print_json({"encoder": str(result.folder), **result.scores})
        return
    _print(result)


def _print(result: Run) -> None:
    from litotes.cli.display import print_lines, print_table

    scores = result.scores
    low, high = scores["interval"]
    row = [
        f"{scores['n_pieces']:,}",
        f"{scores['perplexity']:.2f}",
        f"{low:.2f}–{high:.2f}",
        f"{scores['history'][0]['perplexity']:.2f}",
        f"{scores['unigram']:.2f}",
        f"{scores['accuracy']:.3f}",
    ]
    columns = [
        "pieces guessed",
        "perplexity",
        "95 % interval",
        "before",
        "by frequency alone",
        "accuracy",
    ]
    if scores["next_sentence"] is not None:
        row.append(f"{scores['next_sentence']:.3f}")
        columns.append("next sentence, accuracy")
    print_table(columns, [row], title="Held-out texts")
    print_lines(
        f"The encoder is in {result.folder}. Use it: litotes train RECIPE --set"
        f" model.encoder={result.folder}"
    )
