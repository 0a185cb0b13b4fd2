"""The answers of one model to texts, "unsure" among them where it was calibrated to say so."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.values import Answer, Task
from litotes.model.calibration import Calibration
from litotes.model.inference import to_answers
from litotes.model.runtime import Runtime


def make_answers(
    runtime: Runtime, logits: Mapping[str, NDArray[Any]], variety: str | None
) -> dict[str, list[Answer]]:
    """By task. logits: {task: (text, class)}. variety: that of all texts, where it is known."""
    answers = {}
    for name, own in logits.items():
        answers[name] = to_answers(
            own,
            runtime.tasks[name],
            runtime.calibration.get(name, Calibration()),
            label_sets=runtime.label_sets.get(name),
            variety=variety,
        )
    return answers


def promised_tasks(runtime: Runtime) -> dict[str, Task]:
    """The tasks of a model, each with the coverage that its sets of labels are promised to have,
    and whether texts may be answered early.
    """
    tasks = {}
    for name, task in runtime.tasks.items():
        tasks[name] = replace(task, has_exits=runtime.has_exits)
    for name, sets in runtime.label_sets.items():
        tasks[name] = replace(tasks[name], coverage=sets.coverage)
    return tasks


def join_tasks(runtimes: Sequence[Runtime]) -> dict[str, Task]:
    """The tasks of several models, each of which only one may answer."""
    tasks: dict[str, Task] = {}
    for runtime in runtimes:
        for name in runtime.tasks.keys() & tasks.keys():
            raise UserError(
                f"Two of the models answer {name}: take one of them out, so that there is one"
                " answer."
            )
        tasks |= promised_tasks(runtime)
    return tasks


def known_varieties(runtimes: Sequence[Runtime]) -> tuple[str, ...]:
    """Those that some task has a bound of its own for."""
    names: set[str] = set()
    for runtime in runtimes:
        for sets in runtime.label_sets.values():
            names.update(sets.varieties)
    return tuple(sorted(names))


def check_variety(name: str | None, runtimes: Sequence[Runtime]) -> None:
    """A name must be one that decides something; None is any variety."""
    if name is None:
        return
    known = known_varieties(runtimes)
    if not known:
        raise UserError(
            f"The variety {name!r:.60} changes nothing: the model was not calibrated for varieties."
            " Leave it out, or use `litotes calibrate --by variety` first."
        )
    if name not in known:
        raise UserError(
            f"{unknown_name(name, known, 'variety')} The model was not calibrated for others:"
            " leave it out, and the bound of all texts is used."
        )


def identity(runtime: Runtime, variety: str | None) -> str:
    """A name for what decides the answers of a model, its sets of labels included."""
    if not runtime.label_sets:
        return runtime.identity()
    settings = (sorted((name, repr(sets)) for name, sets in runtime.label_sets.items()), variety)
    return f"{runtime.identity()} {hashlib.sha256(repr(settings).encode()).hexdigest()}"
