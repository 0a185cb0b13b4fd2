"""The columns that predictions become: one table for CSV, JSON lines, Parquet and data frames.

name                   kind      place in JSON
text                   string    text
sentiment              string    sentiment.label
sentiment_probability  float     sentiment.probability
…                                                        (two columns for each task)
truncated              bool      truncated
unreadable             bool      unreadable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from litotes.core.values import Prediction, Task

STRING, FLOAT, BOOL = "string", "float", "bool"


@dataclass(frozen=True)
class Column:
    """One column of predictions.

    kind: STRING, FLOAT (None where there is no number) or BOOL. json_path: the keys that lead to
    the value in the JSON object of a prediction.
    """

    name: str
    kind: str
    json_path: tuple[str, ...]
    value: Callable[[Prediction], Any]

    def values(self, predictions: Iterable[Prediction]) -> list[Any]:
        return list(map(self.value, predictions))


TEXT = Column("text", STRING, ("text",), attrgetter("text"))
TRUNCATED = Column("truncated", BOOL, ("truncated",), attrgetter("truncated"))
UNREADABLE = Column("unreadable", BOOL, ("unreadable",), attrgetter("unreadable"))


def answer_columns(tasks: Mapping[str, Task]) -> list[Column]:
    """All columns but the text: label and probability of each task, then `truncated` and
    `unreadable`.
    """
    columns = []
    for name, task in tasks.items():
        label_kind = FLOAT if task.is_regression else STRING
        columns.append(Column(name, label_kind, (name, "label"), _Field(name, "label")))
        columns.append(
            Column(f"{name}_probability", FLOAT, (name, "probability"), _Field(name, "probability"))
        )
    return [*columns, TRUNCATED, UNREADABLE]


def columns_of(tasks: Mapping[str, Task]) -> list[Column]:
    """All columns: the text, then the answers to these tasks."""
    return [TEXT, *answer_columns(tasks)]


def as_json(prediction: Prediction, columns: Iterable[Column]) -> dict[str, Any]:
    """The stable form: {"text": …, task: {"label": …, "probability": …}, "truncated": …,
    "unreadable": …}.
    """
    document: dict[str, Any] = {}
    for column in columns:
        *parents, last = column.json_path
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = column.value(prediction)
    return document


@dataclass(frozen=True)
class _Field:
    """Reads one field of the answer to one task."""

    task: str
    field: str

    def __call__(self, prediction: Prediction) -> Any:
        return getattr(prediction.answers[self.task], self.field)
