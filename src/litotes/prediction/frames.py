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
    cells = [adapter.values(batch, name) for name in read]
    if len(set(map(len, cells))) > 1:
        raise UserError(
            f"The batch has {len(cells[0])} values in {column!r} and {len(cells[1])} in {pair!r}:"
            " give as many of each."
        )
    rows = enumerate(zip(*cells, strict=True), start=1)
    asked = [_asked(number, dict(zip(read, row, strict=True))) for number, row in rows]
    problems = [text.problem for text in asked if isinstance(text, BadText)]
    if problems and bad_rows == "stop":
        raise UserError(problems[0])
    if problems and bad_rows == "skip":
        good = [place for place, text in enumerate(asked) if not isinstance(text, BadText)]
        batch, asked = adapter.take(batch, good), [asked[place] for place in good]
    added: dict[Column, list[Any]] = {each: [] for each in columns}
    for answers in answer(asked):
        for each, found in added.items():
            found += answers.cells(each)
    return adapter.add(batch, added, column)


def _asked(number: int, cells: Mapping[str, Any]) -> str | tuple[str, str] | BadText:
    """The text of a row, or its two, by column; or why they cannot be asked about."""
    texts: list[str] = []
    for column, cell in cells.items():
        is_missing = cell is None or (isinstance(cell, float) and cell != cell)  # numpy marks NaN
        text = "" if is_missing else cell
        row = Row("The batch", number, {column: text}, unit="row")
        try:
            if not isinstance(text, str):
                kind = type(text).__name__
                raise UserError(f"{row.at(column)} holds a {kind}: make it a text.")
            texts.append(row.text(column))
        except UserError as error:
            return BadText(text if isinstance(text, str) else "", str(error))
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


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
        import pyarrow as pa

        for column, values in added.items():
            batch = batch.append_column(column.name, pa.array(values, column.kind))
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
        dtypes: dict[str, type] = {FLOAT: float, BOOL: bool}
        result = dict(batch)
        for column, values in added.items():
            # an array of int64 could not say that a value is missing
            dtype = dtypes.get(column.kind, object)
            result[column.name] = np.array(values, dtype) if has_arrays else values
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
