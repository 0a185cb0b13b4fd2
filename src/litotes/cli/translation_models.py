"""What commands do with an encoder-decoder (`kind = "translation"`)."""

from __future__ import annotations

import argparse

from litotes.cli.train import out_of


def train(options: argparse.Namespace) -> None:
    """`litotes train` with a recipe of `kind = "translation"`."""
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.cli.translation_scores import print_translation_scores
    from litotes.training.recipe import TranslationRecipe
    from litotes.training.run import train as train_recipe

    recipe = TranslationRecipe.read(options.recipe, changes=options.set)
    if options.seed is not None:
        recipe = recipe.model_copy(update={"seed": options.seed})
    with progress() as watch:
        result = train_recipe(
            recipe, out_of(options), device=options.device, resume=options.resume, watch=watch
        )
    say(result.notes)
    if options.json:
        print_json({"model": str(result.folder), **result.scores})
        return
    if result.scores["test"] is not None:
        print_translation_scores(result.scores["test"])
    ask = f'litotes translate --model {result.folder} "…"'
    print_lines(f"The model is in {result.folder}. Ask it: {ask}")
