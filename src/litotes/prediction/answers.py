"""Answers as columns: arrays from a model's logits to the cells of CSV, Parquet and data frames.

logits (text, class)  →  TaskAnswers of each task  →  Answers of a chunk of texts
                      →  cells, a list for each column; or Prediction objects, for who asks for them

column                   kind    place in JSON
text                     string  text
mood                     string  mood.label
mood_probability         float   mood.probability
mood_probability_angry   float   mood.probabilities.angry   (for each label, where asked for)
moods                    string  moods.label                (angry|calm, or none; several labels
                                                             have no probability of their own)
mood_labels              string  mood.labels                (angry|calm; with mood_unsure, where
mood_unsure              string  mood.unsure                the model was calibrated to say so)
warmth                   float   warmth.label               (a regression has one column)
truncated                bool    truncated
unreadable               bool    unreadable
problem                  string  problem
answered_at_layer        int     answered_at_layer          (where the model has exits)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.values import Prediction, Task, why_unsure
from litotes.data.labels import BETWEEN, NONE
from litotes.model.calibration import TaskAnswers
from litotes.model.runtime import Runtime

BAD_ROWS = {
    "empty": "they are kept without answers, with their problem",
    "skip": "they are left out",
    "stop": "the first one ends the work",
}
"""What becomes of rows without a text, or that cannot be read."""

STRING, FLOAT, BOOL, INT = "string", "double", "bool", "int64"
"""The kinds of columns, by Arrow's names for them."""


@dataclass(frozen=True)
class Column:
    """One column of answers.

    kind: STRING, FLOAT, BOOL or INT. field: what it shows, of a task or of the text itself. label:
    whose probability, as a place in `Task.labels`.
    """

    name: str
    kind: str
    field: str
    task: str | None = None
    label: int | None = None


def make_columns(
    tasks: Mapping[str, Task], *, all_probabilities: bool = False, prefix: str = ""
) -> list[Column]:
    """All columns but the text: label and probability of each task, and which labels are possible
    where the model was calibrated to say; then what was wrong, and after how many layers a text was
    answered, where it may leave early.

    all_probabilities: also that of every label. prefix: stands before every name.
    """
    columns = []

    def add(name: str, kind: str, field: str, *of_task: Any) -> None:
        columns.append(Column(prefix + name, kind, field, *of_task))

    for name, task in tasks.items():
        add(name, FLOAT if task.is_regression else STRING, "label", name)
        if task.is_choice:
            add(f"{name}_probability", FLOAT, "share", name)
        for place, label in enumerate(task.labels if all_probabilities else ()):
            add(f"{name}_probability_{label}", FLOAT, "probability", name, place)
        if task.coverage is not None:
            add(f"{name}_labels", STRING, "labels", name)
            add(f"{name}_unsure", STRING, "unsure", name)
    add("truncated", BOOL, "truncated")
    add("unreadable", BOOL, "unreadable")
    add("problem", STRING, "problem")
    if any(task.has_exits for task in tasks.values()):
        add("answered_at_layer", INT, "layers")
    return columns


@dataclass(frozen=True, eq=False)
class Answers:
    """A chunk of texts and its answers.

    texts, pairs: as they are shown. problems: why a text could not be asked about, by its place;
    the arrays are over all others, in order: tasks: what each task answers. truncated, unreadable:
    see `Prediction`. layers: after how many each text was answered; None: of a model without exits.
    """

    texts: Sequence[str]
    pairs: Sequence[str | None]
    problems: Mapping[int, str]
    tasks: Mapping[str, TaskAnswers]
    truncated: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    layers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def cells(self, column: Column) -> list[Any]:
        """Lists the cells of a column, one for each text; None where there is no answer."""
        if column.field == "problem":
            return [self.problems.get(place) for place in range(len(self))]
        if column.task is not None:
            return self._spread(_task_cells(self.tasks[column.task], column))
        values = getattr(self, column.field)
        if values is None:  # one of several models has exits, and it is not this chunk's
            return [None] * len(self)
        return self._spread(values.tolist(), missing=False if column.kind == BOOL else None)

    def predictions(self) -> list[Prediction]:
        """The same as objects."""
        rows = zip(*(own.objects() for own in self.tasks.values()), strict=True)
        answers = (dict(zip(self.tasks, row, strict=True)) for row in rows)
        layers = repeat(None) if self.layers is None else self.layers.tolist()
        flags = self.truncated.tolist(), self.unreadable.tolist(), repeat(None), layers
        found = zip(answers, *flags, strict=False)
        predictions = []
        for place, (text, pair) in enumerate(zip(self.texts, self.pairs, strict=True)):
            if place in self.problems:
                problem = self.problems[place]
                predictions.append(Prediction(text, {}, truncated=False, problem=problem))
            else:
                predictions.append(Prediction(text, *next(found), pair))
        return predictions

    def _spread(self, values: Iterable[Any], *, missing: Any = None) -> list[Any]:
        """The values in the places of their texts."""
        if not self.problems:
            return list(values)
        found = iter(values)
        return [missing if place in self.problems else next(found) for place in range(len(self))]


def _task_cells(answers: TaskAnswers, column: Column) -> list[Any]:
    match column.field:
        case "label" if answers.task.multi_label:
            named: Sequence[Any] = answers.labels()
            return [BETWEEN.join(given) or NONE for given in named]
        case "label":
            return list(answers.labels())
        case "share":
            return answers.shares()
        case "labels":
            return [BETWEEN.join(possible or ()) for possible in answers.sets()]
        case "unsure":
            return [why_unsure(possible) for possible in answers.sets()]
    assert answers.probabilities is not None, "of a regression there is no such column"
    return answers.probabilities[:, column.label].tolist()


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
    document["truncated"] = prediction.truncated
    document["unreadable"] = prediction.unreadable
    document["problem"] = prediction.problem
    if prediction.answered_at_layer is not None:
        document["answered_at_layer"] = prediction.answered_at_layer
    return {prefix + name: value for name, value in document.items()} if prefix else document


def join_tasks(runtimes: Sequence[Runtime]) -> dict[str, Task]:
    """The tasks of several models, each of which only one may answer; with the coverage that its
    sets of labels are promised to have, and whether texts may be answered early.
    """
    tasks: dict[str, Task] = {}
    for runtime in runtimes:
        for name, task in runtime.tasks.items():
            if name in tasks:
                raise UserError(
                    f"Two of the models answer {name}: take one of them out, so that there is one"
                    " answer."
                )
            sets = runtime.label_sets.get(name)
            coverage = None if sets is None else sets.coverage
            tasks[name] = replace(task, coverage=coverage, has_exits=runtime.has_exits)
    return tasks


def known_varieties(runtimes: Sequence[Runtime]) -> tuple[str, ...]:
    """Lists the varieties that some task has a bound of its own for."""
    by_task = [sets.varieties for one in runtimes for sets in one.label_sets.values()]
    return tuple(sorted(set().union(*by_task)))


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
