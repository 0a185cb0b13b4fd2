"""Parquet files, read group by group."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError, reason_of
from litotes.data.tables.files import Start
from litotes.data.tables.row import Row, as_text, require_columns
from litotes.data.tables.unpacking import UnpackingLimit

_REMEDY = "save it as a CSV file"


def read_parquet(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    """The rows of a file, with these columns alone."""
    with open_parquet(path) as file:
        require_columns(str(path), file.schema_arrow.names, needs)
        columns = list(dict.fromkeys(needs))
        for column in columns:
            _check_type(path, file.schema_arrow, column)
        records = _records(file, columns, start.row)
        limit = UnpackingLimit(path, _REMEDY)
        for number, record in enumerate(records, start=start.row + 1):
            values = {}
            for key, value in record.items():
                values[key] = as_text(value, f"{path}, row {number}, column {key!r}")
            limit.add(sum(map(len, values.values())), n_rows=1)
            yield Row(str(path), number, values, unit="row", found=record)


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
            _check_size(path, file.metadata)
            yield file
    except UnicodeDecodeError as error:
        raise UserError(f"{path} holds text that is not UTF-8: write it again as UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} is not a Parquet file, or a damaged one: write it again ({reason_of(error)})."
        ) from error


def _check_size(path: Path, metadata: Any) -> None:
    """Refuses a file that says itself that it unpacks to too much."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    n_bytes = sum(group.total_byte_size for group in groups)
    UnpackingLimit(path, _REMEDY).add(n_bytes, n_rows=metadata.num_rows)


def _check_type(path: Path, schema: Any, column: str) -> None:
    """Refuses what is neither text nor number before it is read: not every date is one in Python.

    Of two columns with one name, either could be meant.
    """
    from pyarrow import types

    if schema.names.count(column) > 1:
        raise UserError(f"{path} has two columns {column!r}: rename all but one.")
    stored = schema.field(column).type
    kind = stored.value_type if types.is_dictionary(stored) else stored
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if not (is_text or is_number or types.is_null(kind)):
        raise UserError(f"{path}, column {column!r} holds {stored}: make it a text or a number.")


def _records(file: Any, columns: list[str], n_before: int) -> Iterator[dict[str, Any]]:
    """The records after the first n_before.

    Row groups that lie before are not read; in the one that is cut through, rows are skipped.
    """
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    first = 0
    while first < len(sizes) and n_before >= sizes[first]:
        n_before -= sizes[first]
        first += 1
    groups = list(range(first, len(sizes)))
    for batch in file.iter_batches(batch_size=256, row_groups=groups, columns=columns):
        yield from batch.slice(n_before).to_pylist()
        n_before = max(n_before - batch.num_rows, 0)
