"""Rows with their answers: each row's columns stay with it while its text is asked about."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.numbers import counted, require_count
from litotes.core.values import BadText, Prediction
from litotes.prediction.tables.layout import AnsweredRow, Layout

if TYPE_CHECKING:  # a typed text needs nothing of tables
    from litotes.data.tables.row import Row
    from litotes.prediction.predictor import Predictor
    from litotes.prediction.tables.request import TableRequest

_N_PROBLEMS = 3
"""Problems that are told one by one; more are only counted."""

Asked = str | tuple[str, str] | BadText
"""What the model is asked about: a text, a text and a second one, or why neither can be read."""


@dataclass(frozen=True)
class InputRow:
    """kept: what is copied to the output, by column."""

    kept: Mapping[str, object]
    asked: Asked


@dataclass(frozen=True)
class Tally:
    """What became of rows so far.

    n_bad: those without an answer; n_written: without those that were left out. n_unreadable: texts
    of which the model knows no part. problems: of the first bad rows.
    """

    n_read: int = 0
    n_written: int = 0
    n_bad: int = 0
    n_unreadable: int = 0
    problems: tuple[str, ...] = ()

    def add(self, prediction: Prediction, bad_rows: str) -> Tally:
        """bad_rows: see `BAD_ROWS`."""
        problem = prediction.problem
        return self.merge(
            Tally(
                1,
                int(is_written(prediction, bad_rows)),
                int(problem is not None),
                int(prediction.unreadable),
                () if problem is None else (problem,),
            )
        )

    def merge(self, other: Tally) -> Tally:
        return Tally(
            self.n_read + other.n_read,
            self.n_written + other.n_written,
            self.n_bad + other.n_bad,
            self.n_unreadable + other.n_unreadable,
            (*self.problems, *other.problems)[:_N_PROBLEMS],
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Tally:
        counts = {}
        for name in ("n_read", "n_written", "n_bad", "n_unreadable"):
            counts[name] = require_count(content[name])
        return cls(**counts, problems=tuple(map(str, content["problems"])))

    def sentences(self, bad_rows: str) -> list[str]:
        """What the user should know. bad_rows: see `BAD_ROWS`."""
        told = []
        if self.n_bad:
            fate = "was left out" if self.n_bad == 1 else "were left out"
            if bad_rows != "skip":
                fate = "has no answer" if self.n_bad == 1 else "have no answers"
            n_more = self.n_bad - len(self.problems)
            more = f" And {n_more:,} more." if n_more else ""
            told.append(f"{counted(self.n_bad, 'row')} {fate}: {' '.join(self.problems)}{more}")
        if self.n_unreadable:
            told.append(
                f"Unreadable texts: {self.n_unreadable:,} (the model knows no part of them)."
            )
        return told


def is_written(prediction: Prediction, bad_rows: str) -> bool:
    """Whether its row is part of the output. bad_rows: see `BAD_ROWS`."""
    return prediction.problem is None or bad_rows != "skip"


@dataclass(frozen=True)
class FileResult:
    """A finished file: what its rows hold, and what became of those of the input."""

    layout: Layout
    tally: Tally


def input_rows(
    request: TableRequest, rows: Iterable[Row], kept: Sequence[str] | None
) -> Iterator[InputRow]:
    """Rows with what is kept of them, None: all, and what the model is to be asked."""
    for row in rows:
        yield InputRow(_kept_values(row, kept), _asked(request, row))


def _kept_values(row: Row, kept: Sequence[str] | None) -> dict[str, object]:
    present = {**row.values, **row.found}
    return present if kept is None else {name: present[name] for name in kept if name in present}


def _asked(request: TableRequest, row: Row) -> Asked:
    try:
        text, *others = (row.text(column) for column in request.texts)
    except UserError as error:
        if not request.is_lenient:
            raise
        return BadText(row.values.get(request.column, ""), str(error))
    return (text, others[0]) if others else text


def answer_rows(
    predictor: Predictor, rows: Iterable[InputRow], *, bad_texts: str = "empty"
) -> Iterator[AnsweredRow]:
    """Every row with its prediction, in order; of a bad one, that has a problem."""
    waiting: deque[InputRow] = deque()

    def asked() -> Iterator[Asked]:
        for row in rows:
            waiting.append(row)
            yield row.asked

    for prediction in predictor.stream(asked(), bad_texts=bad_texts):
        yield AnsweredRow(waiting.popleft().kept, prediction)
