"""Adds the columns of predictions to a batch, whatever kind of batch it is.

    pandas DataFrame · pyarrow Table or RecordBatch · {"text": array or list, …}

A batch is recognised by its class: pandas and pyarrow are imported only for batches of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.core.values import BadText, Task
from litotes.data.tables.rows import Row, require_columns
from litotes.prediction.answers import (
    BAD_ROWS,
    BOOL,
    FLOAT,
    INT,
    STRING,
    Answers,
    Column,
    make_columns,
)

Answer = Callable[[Sequence[str | tuple[str, str] | BadText]], Iterable[Answers]]
"""answer(texts): the answers to texts, pairs or texts that cannot be read, in chunks."""


def add_predictions(
    batch: Any,
    tasks: Mapping[str, Task],
    answer: Answer,
    *,
    column: str = "text",
    pair: str | None = None,
    bad_rows: str = "empty",
    all_probabilities: bool = False,
    prefix: str = "",
) -> Any:
    """The batch with one more column for each of `make_columns`. column, pair: those of its texts;
    for the others see `TableRequest`.
    """
    pick(BAD_ROWS, bad_rows, "treatment of bad rows")
    adapter = _adapter_of(batch)
    columns = make_columns(tasks, all_probabilities=all_probabilities, prefix=prefix)
    read = [column] if pair is None else [column, pair]
    _check_names(adapter.names(batch), read, columns)
    texts, *seconds = (_texts(adapter.values(batch, name), name) for name in read)
    asked: list[str | tuple[str, str] | BadText] = list(texts)
    if seconds:
        if len(seconds[0]) != len(texts):
            raise UserError(
                f"The batch has {len(texts)} values in {column!r} and {len(seconds[0])} in"
                f" {pair!r}: give as many of each."
            )
        asked = [_join(*own) for own in zip(texts, *seconds, strict=True)]
    good = [place for place, text in enumerate(asked) if not isinstance(text, BadText)]
    if bad_rows == "stop" and len(good) < len(asked):
        raise UserError(next(text.problem for text in asked if isinstance(text, BadText)))
    if bad_rows == "skip" and len(good) < len(asked):
        batch, asked = adapter.take(batch, good), [asked[place] for place in good]
    added: dict[Column, list[Any]] = {each: [] for each in columns}
    for answers in answer(asked):
        for each, cells in added.items():
            cells += answers.cells(each)
    return adapter.add(batch, added, column)


def _join(text: Any, pair: Any) -> Any:
    """A text with its pair; of two of which one is bad, that."""
    for own in (text, pair):
        if isinstance(own, BadText):
            return own
    return text, pair


def arrow_array(values: Sequence[object], kind: str) -> Any:
    """A pyarrow array of the type that stands for a column's kind."""
    import pyarrow as pa

    types = {STRING: pa.string(), FLOAT: pa.float64(), BOOL: pa.bool_(), INT: pa.int64()}
    return pa.array(values, types[kind])


def _check_names(names: list[str], needs: Sequence[str], columns: Sequence[Column]) -> None:
    written = list(map(str, names))  # pandas counts columns that have no names
    for name in needs:
        if name not in names:
            require_columns("The batch", written, [str(name)])
        if names.count(name) > 1:
            raise UserError(
                f"The batch has the column {name!r} {names.count(name)} times. Rename all but one."
            )
    for column in columns:
        if column.name in names:
            raise UserError(
                f"The batch has a column {column.name!r} already, which the answers would take:"
                " rename it, or give a prefix for the answers (prefix=)."
            )


def _texts(values: Sequence[object], column: str) -> list[str | BadText]:
    return [_text(value, number, column) for number, value in enumerate(values, start=1)]


def _text(value: object, number: int, column: str) -> str | BadText:
    is_missing = isinstance(value, float) and value != value  # NaN, as numpy marks it
    if value is None or is_missing:
        value = ""
    if not isinstance(value, str):
        return BadText(
            "",
            f"The batch, row {number}, column {column!r} holds a {type(value).__name__}: make it a"
            " text.",
        )
    try:
        return Row("The batch", number, {column: value}, unit="row").text(column)
    except UserError as error:
        return BadText(value, str(error))


# Each class of batch, and how its columns are read and added to. A method is given the batch and
# leaves it as it was; `values` has None for what is missing.


class _Pandas:
    def names(self, batch: Any) -> list[str]:
        return list(batch.columns)

    def values(self, batch: Any, column: str) -> Sequence[object]:
        series = batch[column]
        return list(series.astype(object).where(series.notna(), None))

    def take(self, batch: Any, places: list[int]) -> Any:
        return batch.iloc[places]

    def add(self, batch: Any, added: Mapping[Column, list[Any]], text_column: str) -> Any:
        import pandas as pd

        # Int64 knows what is missing; int64 does not
        dtypes = {STRING: "str", FLOAT: "float64", BOOL: "bool", INT: "Int64"}
        series = {}
        for column, values in added.items():
            series[column.name] = pd.Series(values, batch.index, dtypes[column.kind])
        return batch.assign(**series)


class _Arrow:
    def names(self, batch: Any) -> list[str]:
        return list(batch.schema.names)

    def values(self, batch: Any, column: str) -> Sequence[object]:
        return list(batch.column(column).to_pylist())

    def take(self, batch: Any, places: list[int]) -> Any:
        return batch.take(places)

    def add(self, batch: Any, added: Mapping[Column, list[Any]], text_column: str) -> Any:
        for column, values in added.items():
            batch = batch.append_column(column.name, arrow_array(values, column.kind))
        return batch


class _Columns:
    """Columns by name: arrays as Ray Data has them, or lists."""

    def names(self, batch: Any) -> list[str]:
        return list(batch)

    def values(self, batch: Any, column: str) -> Sequence[object]:
        if isinstance(batch[column], str):  # whose letters are no rows
            raise UserError(f"The batch's column {column!r} is one string: give a list of texts.")
        return list(batch[column])

    def take(self, batch: Any, places: list[int]) -> Any:
        taken = {}
        for name, values in batch.items():
            is_array = isinstance(values, np.ndarray)
            taken[name] = values[places] if is_array else [values[place] for place in places]
        return taken

    def add(self, batch: Any, added: Mapping[Column, list[Any]], text_column: str) -> Any:
        # the answers are arrays where the texts are
        has_arrays = isinstance(batch[text_column], np.ndarray)
        # an array of int64 could not say that a value is missing
        dtypes = {STRING: np.dtype(object), FLOAT: np.dtype(np.float64), BOOL: np.dtype(bool)}
        dtypes[INT] = np.dtype(object)
        result = dict(batch)
        for column, values in added.items():
            result[column.name] = np.array(values, dtypes[column.kind]) if has_arrays else values
        return result


def _adapter_of(batch: Any) -> _Pandas | _Arrow | _Columns:
    # a batch of theirs exists only where they have been imported
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
