"""From the answers of all teachers to the lessons of a student."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.values import Example
from litotes.data.corpus import example_key
from litotes.data.sources import load
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.prevalence import with_known_prevalence
from litotes.training.distillation.teachers import read_answers
from litotes.training.lessons import Answers, Lessons

NEUTRAL = "neutral"


def gather_lessons(plan: DistillPlan) -> Lessons:
    """The mean answer of all teachers that have one, text by text; texts without labels that none
    has answered are left out.
    """
    settings = plan.recipe.distill
    answers = with_known_prevalence(with_even_answers(mean_answers(plan), plan), plan)
    answered = {key for by_text in answers.values() for key in by_text}
    others = tuple(example for example in plan.others if example_key(example) in answered)
    return Lessons(
        answers,
        others,
        share=settings.share,
        temperature=settings.temperature,
        about=_describe_teachers(plan),
    )


def _describe_teachers(plan: DistillPlan) -> str:
    settings = plan.recipe.distill
    how = "ready ones, each for texts that it was not trained on"
    if not settings.teachers:
        encoder = plan.recipe.teacher(0).model.encoder
        how = f"{encoder}, cross-fitted in {settings.folds} folds"
    n_teachers = counted(len(plan.teachers), "teacher")
    return f"Distilled from {n_teachers} ({how})."


def mean_answers(plan: DistillPlan) -> Answers:
    """{task: {key of a text: (class,)}}"""
    collected: dict[str, dict[str, list[Tensor]]] = {}
    for job in plan.teachers.values():
        given = read_answers(job)
        keys = [example_key(job.asked[place]) for place in given.places.tolist()]
        for task, probabilities in given.probabilities.items():
            by_text = collected.setdefault(task, {})
            for key, row in zip(keys, probabilities, strict=True):
                by_text.setdefault(key, []).append(row)
    return {task: _means(by_text) for task, by_text in collected.items()}


def with_even_answers(answers: Answers, plan: DistillPlan) -> Answers:
    """The answers, but that every label is as likely as the others for texts that `distill.even`
    calls neutral.
    """
    found = {task: dict(by_text) for task, by_text in answers.items()}
    for source in plan.recipe.distill.even:
        n_even = 0
        for example in load(source):
            for name, label in example.labels.items():
                task = plan.data.train.tasks.get(name)
                if task is not None and label == NEUTRAL and NEUTRAL not in task.labels:
                    even = (1 / task.n_outputs,) * task.n_outputs
                    found.setdefault(name, {})[example_key(example)] = even
                    n_even += 1
        if not n_even:
            raise UserError(
                f"distill.even names {source}, which calls no text neutral in a task where the"
                " student has no such label. Ask it for such texts (of a built-in corpus by"
                " classes=3), or leave it out."
            )
    return found


def _means(by_text: Mapping[str, Sequence[Tensor]]) -> dict[str, tuple[float, ...]]:
    return {key: tuple(torch.stack(list(rows)).mean(0).tolist()) for key, rows in by_text.items()}


def lesson_notes(plan: DistillPlan, lessons: Lessons) -> list[str]:
    """How many texts have an answer, and which learn from their label alone."""
    notes = []
    n_train = len(plan.data.train)
    for task in plan.data.train.tasks:
        by_text = lessons.answers.get(task, {})
        n_without = sum(not _has_answer(example, by_text) for example in plan.data.train)
        if n_without:
            notes.append(
                f"{n_without} of {n_train} training texts learn {task} from their label alone:"
                " every teacher of it was trained on them."
            )
    return notes


def _has_answer(example: Example, by_text: Mapping[str, object]) -> bool:
    return example_key(example) in by_text
