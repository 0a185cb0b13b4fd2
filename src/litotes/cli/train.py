"""`litotes train RECIPE`: a model of any kind; `litotes pretrain RECIPE`: an encoder."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.scores import print_scores, print_translation_scores, print_word_scores
from litotes.cli.tables import print_rows
from litotes.core.figures import render_figure
from litotes.core.storage import write_bytes
from litotes.training.course import Run
from litotes.training.pretraining.course import draw_curve
from litotes.training.recipe import PretrainRecipe, read_recipe
from litotes.training.run import train as train_recipe

PRINTERS: dict[str, Callable[[Any], None]] = {
    "classification": print_scores,
    "translation": print_translation_scores,
}
"""The printers of scores; those of words are for the others."""


def train(options: argparse.Namespace) -> None:
    recipe = read_recipe(options.recipe, changes=options.changes)
    kind = recipe.kind
    if kind == "pretraining":
        return pretrain(options)
    result = _train(recipe, "model", options)
    scores: Any = result.scores
    if options.json and kind == "translation":
        print_json({"model": str(result.folder), **scores})
    elif options.json:
        rows = [row.as_json() for row in scores] if kind == "classification" else scores
        print_json({"model": str(result.folder), "scores": rows, "notes": list(result.notes)})
    else:
        if kind == "translation":
            scores = scores["test"]
        if scores:  # a note says why there are none
            PRINTERS.get(kind, print_word_scores)(scores)
        command = "translate" if kind == "translation" else "predict"
        ask = f'litotes {command} --model {result.folder} "…"'
        print_lines(f"The model is in {result.folder}. Ask it: {ask}")


def _train(recipe: Any, what: str, options: argparse.Namespace) -> Run:
    if options.seed is not None:
        recipe = recipe.changed(seed=options.seed)
    out = Path(options.out or Path("runs") / f"{options.recipe.stem}-{what}")
    with progress() as watch:
        result = train_recipe(
            recipe, out, device=options.device, resume=options.resume, watch=watch
        )
    say(result.notes)
    return result


HELD_OUT = """\
pieces guessed: {0[n_pieces]:,}
perplexity: {0[perplexity]:.2f}
95 % interval: {0[interval]:.2f}
before: {0[history][0][perplexity]:.2f}
by frequency alone: {0[unigram]:.2f}
accuracy: {0[accuracy]:.3f}
next sentence, accuracy: {0[next_sentence]:.3f}
"""


def pretrain(options: argparse.Namespace) -> None:
    recipe = PretrainRecipe.read(options.recipe, changes=options.changes)
    result = _train(recipe, "encoder", options)
    scores: Any = result.scores
    curve = draw_curve(scores["history"], unigram=scores["unigram"])
    write_bytes(result.folder / "perplexity.svg", render_figure(curve, "svg"))
    if options.json:
        print_json({"encoder": str(result.folder), **scores})
        return
    print_rows(HELD_OUT, [scores], title="Held-out texts")
    print_lines(
        f"The encoder is in {result.folder}. Use it: litotes train RECIPE --set"
        f" model.encoder={result.folder}"
    )
