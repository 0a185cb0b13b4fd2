"""Training, by recipes and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from litotes.core.progress import Watch, ignore_progress
from litotes.data.corpus import Corpus
from litotes.training import run
from litotes.training.course import Run
from litotes.training.recipe import BaseRecipe, WordRecipe, read_recipe


def train(
    recipe: BaseRecipe | str | Path,
    out: str | Path,
    *,
    corpus: Corpus | None = None,
    changes: Sequence[str] = (),
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> Run:
    """Trains what a recipe of any kind describes into the folder `out` and tests it, as `litotes
    train` does.

    recipe: a `Recipe`, or the path of a recipe file, with `changes` such as "training.epochs=3".
    corpus: texts to use in place of the recipe's `data.source`.
    resume: continues a run that was stopped, or returns the one that is finished.
    """
    if not isinstance(recipe, BaseRecipe):
        recipe = read_recipe(Path(recipe), changes=changes)
    elif changes:
        raise TypeError("changes are for a recipe file; change a Recipe with recipe.changed(…)")
    return run.train(recipe, Path(out), corpus=corpus, device=device, resume=resume, watch=watch)


def train_words(
    recipe: WordRecipe | str | Path,
    out: str | Path,
    *,
    changes: Sequence[str] = (),
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> Run:
    """Trains a model that answers words (`kind = "tagging"` or `"span"`), as `litotes train` does.

    `Tagger.load(out)` asks it. The arguments are those of `train`.
    """
    if not isinstance(recipe, WordRecipe):
        recipe = WordRecipe.read(Path(recipe), changes=changes)
    elif changes:
        raise TypeError("changes are for a recipe file; change a WordRecipe with .changed(…)")
    return run.train(recipe, Path(out), device=device, resume=resume, watch=watch)
