"""Columns of answers beside the columns of a batch, whatever kind of batch it is.

    pandas DataFrame · pyarrow Table or RecordBatch · {"text": array or list, …}

A batch is known by its class: pandas and pyarrow are not imported for a batch that is none of
theirs.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.values import Prediction, Task
from litotes.data.rows import Row, require_columns

STRING, FLOAT, BOOL = "string", "float", "bool"


@dataclass(frozen=True)
class Column:
    """A column to be added. kind: STRING, FLOAT (None where there is no number) or BOOL."""

    name: str
    kind: str
    values: list[Any]


def names_of(tasks: Mapping[str, Task]) -> list[str]:
    """The columns that answers become: sentiment, sentiment_probability, …, truncated."""
    return [column.name for column in columns_of(tasks, [])]


def columns_of(tasks: Mapping[str, Task], predictions: Sequence[Prediction]) -> list[Column]:
    """What is added for these tasks, in the order of a CSV file of answers."""
    columns = []
    for name, task in tasks.items():
        answers = [prediction.answers[name] for prediction in predictions]
        columns.append(
            Column(
                name, FLOAT if task.is_regression else STRING, [answer.label for answer in answers]
            )
        )
        columns.append(
            Column(f"{name}_probability", FLOAT, [answer.probability for answer in answers])
        )
    return [
        *columns,
        Column("truncated", BOOL, [prediction.truncated for prediction in predictions]),
    ]


def answered(
    batch: Any,
    ask: Callable[[list[str], list[str] | None], list[Prediction]],
    tasks: Mapping[str, Task],
    *,
    column: str,
    pair: str | None,
) -> Any:
    """The batch with a column more for each of `names_of(tasks)`; ask(texts, pairs) is the
    predictor.
    """
    kind = _kind_of(batch)
    names = kind.names(batch)
    needs = [column] if pair is None else [column, pair]
    require_columns("The batch", names, needs)
    for name in needs:
        if names.count(name) > 1:
            raise UserError(
                f"The batch has the column {name!r} {names.count(name)} times. Rename all but one."
            )
    for name in names_of(tasks):
        if name in names:
            raise UserError(
                f"The batch has a column {name!r} already, which the answers would take: rename it,"
                " or leave it out."
            )
    texts = _texts(kind.values(batch, column), column)
    pairs = None if pair is None else _texts(kind.values(batch, pair), pair)
    if pairs is not None and len(pairs) != len(texts):
        raise UserError(
            f"The batch has {len(texts)} values in {column!r} and {len(pairs)} in {pair!r}: give as"
            " many of each."
        )
    return kind.joined(batch, columns_of(tasks, ask(texts, pairs)), beside=column)


def _texts(values: Sequence[object], column: str) -> list[str]:
    return [_text(value, number, column) for number, value in enumerate(values, start=1)]


def _text(value: object, number: int, column: str) -> str:
    if value is None or isinstance(value, str):
        return Row("The batch", number, {column: value or ""}, unit="row").text(column)
    if isinstance(value, float) and value != value:  # NaN: how numpy says that there is nothing
        return _text(None, number, column)
    raise UserError(
        f"The batch, row {number}, column {column!r} holds a {type(value).__name__}: make it a"
        " text."
    )


class _Kind(ABC):
    """What is asked of a batch."""

    @abstractmethod
    def names(self, batch: Any) -> list[str]:
        """Of its columns."""

    @abstractmethod
    def values(self, batch: Any, column: str) -> Sequence[object]:
        """What a column holds; None for what is missing."""

    @abstractmethod
    def joined(self, batch: Any, columns: Sequence[Column], *, beside: str) -> Any:
        """A batch of the same kind with more columns; the one given is left as it was. beside: the
        column of the texts.
        """


class _Pandas(_Kind):
    def names(self, batch: Any) -> list[str]:
        return list(batch.columns)

    def values(self, batch: Any, column: str) -> Sequence[object]:
        series = batch[column]
        return list(series.astype(object).where(series.notna(), None))

    def joined(self, batch: Any, columns: Sequence[Column], *, beside: str) -> Any:
        import pandas as pd

        dtypes = {STRING: "str", FLOAT: "float64", BOOL: "bool"}
        return batch.assign(
            **{
                column.name: pd.Series(column.values, batch.index, dtypes[column.kind])
                for column in columns
            }
        )


class _Arrow(_Kind):
    def names(self, batch: Any) -> list[str]:
        return list(batch.schema.names)

    def values(self, batch: Any, column: str) -> Sequence[object]:
        return list(batch.column(column).to_pylist())

    def joined(self, batch: Any, columns: Sequence[Column], *, beside: str) -> Any:
        for column in columns:
            batch = batch.append_column(column.name, arrow_array(column))
        return batch


class _Columns(_Kind):
    """By name: arrays as Ray Data has them, or lists."""

    def names(self, batch: Any) -> list[str]:
        return list(batch)

    def values(self, batch: Any, column: str) -> Sequence[object]:
        return list(batch[column])

    def joined(self, batch: Any, columns: Sequence[Column], *, beside: str) -> Any:
        if not isinstance(batch[beside], np.ndarray):
            return {**batch, **{column.name: column.values for column in columns}}
        dtypes = {STRING: np.dtype(object), FLOAT: np.dtype(np.float64), BOOL: np.dtype(bool)}
        return {
            **batch,
            **{column.name: np.array(column.values, dtypes[column.kind]) for column in columns},
        }


def arrow_array(column: Column) -> Any:
    import pyarrow as pa

    return pa.array(
        column.values, {STRING: pa.string(), FLOAT: pa.float64(), BOOL: pa.bool_()}[column.kind]
    )


def _kind_of(batch: Any) -> _Kind:
    # whoever has made a batch of theirs has imported them
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(batch, pandas.DataFrame):
        return _Pandas()
    if arrow is not None and isinstance(batch, arrow.Table | arrow.RecordBatch):
        return _Arrow()
    if isinstance(batch, Mapping):
        return _Columns()
    kinds = "a pandas DataFrame, a pyarrow Table or RecordBatch, or columns by name"
    raise UserError(
        f"A batch is {kinds}; this is a {type(batch).__name__}. For a list of texts there is"
        " `predict`."
    )
