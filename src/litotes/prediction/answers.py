"""The answers of one model to texts, "unsure" among them where it was calibrated to say so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.values import Answer, Prediction, Task
from litotes.data.labels import BETWEEN, NONE
from litotes.model.calibration import Calibration
from litotes.model.runtime import Runtime, to_answers


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


# The columns that predictions become: one table for CSV, Parquet and data frames, one for JSON.
#
# name                     kind    place in JSON
# text                     string  text
# mood                     string  mood.label
# mood_probability         float   mood.probability
# mood_probability_angry   float   mood.probabilities.angry   (for each label, where asked for)
# moods                    string  moods.label                (angry|calm, or none; several labels
#                                                              have no probability of their own)
# mood_labels              string  mood.labels                (angry|calm; with mood_unsure, where
# mood_unsure              string  mood.unsure                the model was calibrated to say so)
# warmth                   float   warmth.label               (a regression has one column)
# truncated                bool    truncated
# unreadable               bool    unreadable
# problem                  string  problem
# answered_at_layer        int     answered_at_layer          (where the model has exits)

STRING, FLOAT, BOOL, INT = "string", "float", "bool", "int"


@dataclass(frozen=True)
class Column:
    """One column of predictions.

    kind: STRING, FLOAT, BOOL or INT. value: None where there is no answer.
    """

    name: str
    kind: str
    value: Callable[[Prediction], Any]

    def values(self, predictions: Iterable[Prediction]) -> list[Any]:
        return list(map(self.value, predictions))


TRUNCATED = Column("truncated", BOOL, attrgetter("truncated"))
UNREADABLE = Column("unreadable", BOOL, attrgetter("unreadable"))
PROBLEM = Column("problem", STRING, attrgetter("problem"))
LAYER = Column("answered_at_layer", INT, attrgetter("answered_at_layer"))


def answer_columns(
    tasks: Mapping[str, Task], *, all_probabilities: bool = False, prefix: str = ""
) -> list[Column]:
    """All columns but the text: label and probability of each task, and which labels are possible
    where the model was calibrated to say; then what was wrong, and after how many layers a text was
    answered, where it may leave early.

    all_probabilities: also that of every label. prefix: stands before every name.
    """
    columns = []
    for name, task in tasks.items():
        if task.is_regression:
            columns.append(Column(name, FLOAT, _Field(name, "label")))
            continue
        if task.multi_label:
            columns.append(Column(name, STRING, _GivenLabels(name)))
            columns += _probability_columns(task) if all_probabilities else []
            continue
        columns.append(Column(name, STRING, _Field(name, "label")))
        columns.append(Column(f"{name}_probability", FLOAT, _Field(name, "probability")))
        if all_probabilities:
            columns += _probability_columns(task)
        if task.coverage is not None:
            columns.append(Column(f"{name}_labels", STRING, _PossibleLabels(name)))
            columns.append(Column(f"{name}_unsure", STRING, _Field(name, "unsure")))
    columns += (TRUNCATED, UNREADABLE, PROBLEM)
    if any(task.has_exits for task in tasks.values()):
        columns.append(LAYER)
    return [Column(prefix + column.name, column.kind, column.value) for column in columns]


def _probability_columns(task: Task) -> list[Column]:
    columns = []
    for label in task.labels:
        name = f"{task.name}_probability_{label}"
        columns.append(Column(name, FLOAT, _Share(task.name, label)))
    return columns


def as_json(prediction: Prediction, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """The stable form: {"text": …, task: {"label": …, "probability": …, "probabilities": {…}},
    "truncated": …, "unreadable": …, "problem": …}.

    A text with a problem has null for each task. Of a pair also "pair", of a model with exits
    "answered_at_layer".
    """
    pair = {} if prediction.pair is None else {"pair": prediction.pair}
    return {"text": prediction.text, **pair, **answers_as_json(prediction, tasks)}


def answers_as_json(
    prediction: Prediction, tasks: Mapping[str, Task], *, prefix: str = ""
) -> dict[str, Any]:
    """`as_json` without the text. prefix: stands before every name."""
    document: dict[str, Any] = {}
    for name in tasks:
        answer = prediction.answers.get(name)
        document[name] = None if answer is None else answer.as_json()
    for column in (TRUNCATED, UNREADABLE, PROBLEM):
        document[column.name] = column.value(prediction)
    if prediction.answered_at_layer is not None:
        document[LAYER.name] = prediction.answered_at_layer
    return {prefix + name: value for name, value in document.items()}


@dataclass(frozen=True)
class _Field:
    """Reads one field of the answer to one task."""

    task: str
    field: str

    def __call__(self, prediction: Prediction) -> Any:
        return getattr(prediction.answers.get(self.task), self.field, None)


@dataclass(frozen=True)
class _GivenLabels:
    """Reads the labels that were given for one task, in one cell; as a source reads it again."""

    task: str

    def __call__(self, prediction: Prediction) -> str | None:
        label = getattr(prediction.answers.get(self.task), "label", None)
        return (BETWEEN.join(label) or NONE) if isinstance(label, tuple) else None


@dataclass(frozen=True)
class _PossibleLabels:
    """Reads the labels that are possible for one task, in one cell."""

    task: str

    def __call__(self, prediction: Prediction) -> str | None:
        answer = prediction.answers.get(self.task)
        return None if answer is None else BETWEEN.join(answer.labels or ())


@dataclass(frozen=True)
class _Share:
    """Reads the probability of one label of one task."""

    task: str
    label: str

    def __call__(self, prediction: Prediction) -> float | None:
        answer = prediction.answers.get(self.task)
        return None if answer is None else answer.probabilities[self.label]


BAD_ROWS = {
    "empty": "they are kept without answers, with their problem",
    "skip": "they are left out",
    "stop": "the first one ends the work",
}
"""What becomes of rows without a text, or that cannot be read."""
