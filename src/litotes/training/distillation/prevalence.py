"""Answers to texts of a source in which a label is known to be rarer, or more frequent, than where
the teachers learned.

    p′_c ∝ p_c · known_c / learned_c          Saerens, Latinne & Decaestecker 2002

A teacher that has learned from texts of which every other one is sarcastic expects as much of film
reviews, where one in twenty may be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from litotes.core.errors import UserError
from litotes.core.values import Example, Task
from litotes.data.corpus import example_key
from litotes.training.distillation.plan import DistillPlan
from litotes.training.lessons import Answers


def with_known_prevalence(answers: Answers, plan: DistillPlan) -> Answers:
    """The answers, those to texts without a label moved to the shares that `distill.prevalence`
    states for their source; where there is no answer, these shares themselves.
    """
    found = {task: dict(by_text) for task, by_text in answers.items()}
    for source, name, given in _stated(plan):
        task = _task_of(plan, name)
        known, learned = stated_shares(task, given), _learned_shares(plan, task)
        texts = [one for one in (*plan.data.train, *plan.others) if one.source == source]
        if not texts:
            raise UserError(
                f"distill.prevalence names the source {source!r}, of which there are no texts to"
                f" learn from. There are: {', '.join(_sources(plan))}."
            )
        by_text = found.setdefault(name, {})
        # a text may come twice: with the label of another task, or in two sources of texts
        labelled = {example_key(one) for one in plan.data.train if name in one.labels}
        for key in dict.fromkeys(map(example_key, texts)):
            if key in labelled:
                continue
            before = by_text.get(key)
            by_text[key] = known if before is None else move_answer(before, known, learned)
    return found


def _stated(plan: DistillPlan) -> Iterator[tuple[str, str, Mapping[str, float]]]:
    """Every source and task with a stated prevalence."""
    for source, by_task in plan.recipe.distill.prevalence.items():
        for name, given in by_task.items():
            yield source, name, given


def _task_of(plan: DistillPlan, name: str) -> Task:
    task = plan.data.train.tasks.get(name)
    if task is None or task.is_regression:
        known = [one.name for one in plan.data.train.tasks.values() if not one.is_regression]
        raise UserError(
            f"distill.prevalence states shares of {name}, which is not a task with labels here."
            f" There are: {', '.join(known)}."
        )
    return task


def stated_shares(task: Task, given: Mapping[str, float]) -> tuple[float, ...]:
    """The stated shares in the order of the labels; what is left goes to the others alike."""
    unknown = [label for label in given if label not in task.labels]
    if unknown:
        raise UserError(
            f"distill.prevalence states a share of {unknown[0]!r}, which is no label of"
            f" {task.name}. Its labels: {', '.join(task.labels)}."
        )
    left, n_others = 1 - sum(given.values()), len(task.labels) - len(given)
    is_whole = math.isclose(left, 0, abs_tol=1e-9)
    is_too_much = left < 0 and not is_whole
    are_shares = all(0 < share < 1 for share in given.values())
    if not are_shares or is_too_much or is_whole != (n_others == 0):
        raise UserError(
            f"The shares of {task.name} in distill.prevalence must lie between 0 and 1 and leave"
            " something for the labels that are not named."
        )
    return tuple(given.get(label, left / max(n_others, 1)) for label in task.labels)


def _learned_shares(plan: DistillPlan, task: Task) -> tuple[float, ...]:
    """How frequent each label is among the texts that teachers learn from."""
    counts = Counter(one.labels[task.name] for one in plan.data.train if task.name in one.labels)
    return tuple(counts[label] / counts.total() for label in task.labels)


def move_answer(
    answer: Sequence[float], known: Sequence[float], learned: Sequence[float]
) -> tuple[float, ...]:
    """A label that no teacher has seen stays impossible."""
    parts = zip(answer, known, learned, strict=True)
    odds = [p * k / share if share else 0.0 for p, k, share in parts]
    return tuple(one / sum(odds) for one in odds)


def _sources(plan: DistillPlan) -> list[str]:
    examples: tuple[Example, ...] = (*plan.data.train, *plan.others)
    return sorted({str(one.source) for one in examples})
