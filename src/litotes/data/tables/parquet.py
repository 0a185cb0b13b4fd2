"""Parquet files, read group by group."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError, reason_of
from litotes.data.tables.files import Start, UnpackingLimit
from litotes.data.tables.rows import Row, as_text, require_columns, require_once

_REMEDY = "save it as a CSV file"
_BATCH = 256


def read_parquet(
    path: Path, needs: Collection[str], start: Start, keeps: Collection[str] = ()
) -> Iterator[Row]:
    """The rows of a file, with these columns alone.

    keeps: columns of any type, as far as the file has them; what is neither text nor number is
    read as text.
    """
    with open_parquet(path) as file:
        schema = file.schema_arrow
        require_columns(str(path), schema.names, needs)
        columns = list(dict.fromkeys((*needs, *(name for name in keeps if name in schema.names))))
        for column in columns:
            require_once(str(path), schema.names, column)
        for column in needs:  # what is neither text nor number is refused before it is read
            stored = schema.field(column).type
            if not _is_plain(stored):
                raise UserError(
                    f"{path}, column {column!r} holds {stored}: make it a text or a number."
                )
        limit = UnpackingLimit(path, _REMEDY)
        for number, record in enumerate(_records(file, columns, start.row), start=start.row + 1):
            values, problem = {}, None
            try:
                for key in needs:
                    values[key] = as_text(record[key], f"{path}, row {number}, column {key!r}")
            except UserError as error:
                problem = str(error)
            limit.add(sum(map(len, values.values())), n_rows=1)
            yield Row(str(path), number, values, "row", record, problem)


def read_arrow(path: Path, columns: Sequence[str], start: int, n_rows: int) -> Any:
    """Some columns of some rows as a pyarrow Table, with the types they have in the file."""
    import pyarrow as pa

    with open_parquet(path) as file:
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
        batches, n_read = [], 0
        for batch in _batches(file, columns, start):
            batches.append(batch)
            n_read += batch.num_rows
            if n_read >= n_rows:
                break
        return pa.Table.from_batches(batches, schema=schema).slice(0, n_rows)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A pyarrow ParquetFile; whatever is wrong with it while it is read becomes one sentence."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UserError(
            f"{path} is a Parquet file, which needs the package pyarrow: pip install"
            " 'litotes[parquet]'."
        ) from error
    try:
        with pq.ParquetFile(path) as file:
            # a file that says itself that it unpacks to too much
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            n_bytes = sum(group.total_byte_size for group in groups)
            UnpackingLimit(path, _REMEDY).add(n_bytes, n_rows=file.metadata.num_rows)
            yield file
    except UnicodeDecodeError as error:
        raise UserError(f"{path} holds text that is not UTF-8: write it again as UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} is not a Parquet file, or a damaged one: write it again ({reason_of(error)})."
        ) from error


def _is_plain(stored: Any) -> bool:
    from pyarrow import types

    kind = stored.value_type if types.is_dictionary(stored) else stored
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_text or is_number or types.is_null(kind))


def _is_binary(stored: Any) -> bool:
    from pyarrow import types

    is_large = types.is_large_binary(stored) or types.is_binary_view(stored)
    return bool(types.is_binary(stored) or is_large or types.is_fixed_size_binary(stored))


def _as_plain(column: Any) -> list[Any]:
    """Values that JSON has; dates and the like as text, made by Arrow: not every date is one in
    Python.
    """
    from pyarrow import BaseExtensionType, compute, types

    stored = column.type
    if _is_plain(stored):
        return list(column.to_pylist())
    if types.is_nested(stored):
        return [json.loads(json.dumps(value, default=str)) for value in column.to_pylist()]
    if isinstance(stored, BaseExtensionType):  # such as UUIDs: as what they are stored
        return _as_plain(column.storage)
    if _is_binary(stored):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    return list(compute.cast(column, "string").to_pylist())


def _records(file: Any, columns: list[str], n_before: int) -> Iterator[dict[str, Any]]:
    """The records after the first n_before."""
    for batch in _batches(file, columns, n_before):
        values = [_as_plain(batch.column(name)) for name in columns]
        for record in zip(*values, strict=True):
            yield dict(zip(columns, record, strict=True))


def _batches(file: Any, columns: Sequence[str], n_before: int) -> Iterator[Any]:
    """The rows after the first n_before.

    Row groups that lie before are not read; in the one that is cut through, rows are skipped.
    """
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    first = 0
    while first < len(sizes) and n_before >= sizes[first]:
        n_before -= sizes[first]
        first += 1
    groups = list(range(first, len(sizes)))
    for batch in file.iter_batches(batch_size=_BATCH, row_groups=groups, columns=list(columns)):
        left = batch.slice(n_before)
        n_before = max(n_before - batch.num_rows, 0)
        if left.num_rows:
            yield left.select(list(columns))
