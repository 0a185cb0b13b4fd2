"""What the rows of an output hold: columns of the input, then those of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from litotes.core.errors import UserError
from litotes.core.values import Prediction, Task
from litotes.prediction.columns import Column, answer_columns

PREFIX = "predicted_"
"""Before the names of the answers' columns, where the table has such names itself."""


@dataclass(frozen=True)
class AnsweredRow:
    """kept: what is copied from the input, by column."""

    kept: Mapping[str, object]
    prediction: Prediction


@dataclass(frozen=True)
class Layout:
    """kept: the columns of the input. texts: those of them that hold texts. types: Arrow's names
    for the types that kept columns have in Parquet; without one, a column is text. is_as_stored:
    whether they have those of the Parquet file they come from. For the others see `TableRequest`.
    """

    kept: tuple[str, ...]
    tasks: Mapping[str, Task]
    texts: tuple[str, ...] = ("text",)
    types: Mapping[str, str] = field(default_factory=dict)
    is_as_stored: bool = False
    all_probabilities: bool = False
    prefix: str = ""
    keep_formulas: bool = False

    def notes(self, asked: str | None) -> list[str]:
        """What the user should know of the names. asked: the prefix that was asked for."""
        if asked is not None or not self.prefix:
            return []
        return [
            f"The table has columns with the names of answers, so these begin with {self.prefix}:"
            f" {', '.join(column.name for column in self.answers)}."
        ]

    @cached_property
    def answers(self) -> list[Column]:
        return answer_columns(
            self.tasks, all_probabilities=self.all_probabilities, prefix=self.prefix
        )

    @property
    def names(self) -> list[str]:
        """All columns in their order."""
        return [*self.kept, *(column.name for column in self.answers)]


def choose_prefix(
    kept: Sequence[str], tasks: Mapping[str, Task], asked: str | None, *, all_probabilities: bool
) -> str:
    """The prefix that keeps the answers' columns apart from those of the table.

    asked: the one that the user named.
    """
    for prefix in ("", PREFIX) if asked is None else (asked,):
        answers = answer_columns(tasks, all_probabilities=all_probabilities, prefix=prefix)
        taken = [column.name for column in answers if column.name in kept]
        if not taken:
            return prefix
    raise UserError(
        f"The table has a column {taken[0]!r} already, which the answers would take: name the"
        " columns to keep (--columns), or what shall stand before the answers' names (--prefix)."
    )
