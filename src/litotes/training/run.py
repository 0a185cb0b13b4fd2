"""One run: a recipe of any kind becomes a trained, tested folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.training.classification import ClassificationCourse
from litotes.training.course import Course, Run
from litotes.training.lessons import Lessons
from litotes.training.objective import RunContext
from litotes.training.pretraining.course import PretrainCourse
from litotes.training.processes import join_processes
from litotes.training.recipe import BaseRecipe, read_recipe
from litotes.training.tagging.course import WordCourse
from litotes.training.translation.course import TranslationCourse

OBJECTIVES: dict[str, type[Course]] = {
    "classification": ClassificationCourse,
    "tagging": WordCourse,
    "span": WordCourse,
    "pretraining": PretrainCourse,
    "translation": TranslationCourse,
}
"""The class that trains each kind of recipe. A new one is a file with its objective, and a line."""


def train(
    recipe: BaseRecipe | str | Path,
    out: str | Path,
    *,
    changes: Sequence[str] = (),
    corpus: Any = None,
    lessons: Lessons | None = None,
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> Run:
    """Trains what a recipe of any kind describes into the folder `out` and tests it.

    recipe: a `Recipe`, or the path of a recipe file, with `changes` such as "training.epochs=3".
    corpus: texts to use in place of the recipe's `data.source`. lessons: answers of teachers to
    learn from besides the labels. resume: continues a run that was stopped, or returns the one that
    is finished.
    """
    if not isinstance(recipe, BaseRecipe):
        recipe = read_recipe(Path(recipe), changes=changes)
    elif changes:
        raise TypeError("changes are for a recipe file; change a Recipe with recipe.changed(…)")
    chosen, course = choose_device(device), OBJECTIVES[recipe.kind]
    objective = course(recipe, corpus=corpus, lessons=lessons)
    with join_processes(chosen.type) as processes:
        context = RunContext(chosen, Path(out), processes=processes, watch=watch)
        return objective.run(context, resume=resume)


train_words = train
"""Another name, for models that answer words (`kind = "tagging"` or `"span"`): `Tagger.load(out)`
asks them.
"""
