"""One run: a recipe of any kind becomes a trained, tested folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.training.classification import ClassificationCourse
from litotes.training.course import Course, Run
from litotes.training.lessons import Lessons
from litotes.training.objective import RunContext
from litotes.training.pretraining.course import PretrainCourse
from litotes.training.processes import join_processes
from litotes.training.tagging.course import WordCourse
from litotes.training.translation.course import TranslationCourse

OBJECTIVES: dict[str, type[Course]] = {
    "classification": ClassificationCourse,
    "tagging": WordCourse,
    "span": WordCourse,
    "pretraining": PretrainCourse,
    "translation": TranslationCourse,
}
"""What each kind of recipe is trained by. A new one is a file with its objective, and a line."""


def train(
    recipe: Any,
    out: Path,
    *,
    corpus: Any = None,
    lessons: Lessons | None = None,
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> Run:
    """Trains what the recipe describes into the folder `out`; with `resume` goes on where a
    stopped run was.

    corpus: texts that are already in memory, in place of those of the recipe's `data.source`.
    lessons: answers of teachers to learn from besides the labels.
    """
    chosen = choose_device(device)
    course = pick(OBJECTIVES, recipe.kind, "kind of model")(recipe, corpus=corpus, lessons=lessons)
    with join_processes(chosen.type) as processes:
        context = RunContext(chosen, out, processes=processes, watch=watch)
        return course.run(context, resume=resume)
