"""Parquet files, read group by group."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.data.tables.files import Start
from litotes.data.tables.row import Row, as_text, require_columns
from litotes.data.tables.unpacking import UnpackingLimit

_REMEDY = "save it as a CSV file"


def read_parquet(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    """The rows of a file, with these columns alone."""
    with open_parquet(path) as file:
        require_columns(str(path), file.schema_arrow.names, needs)
        columns = list(dict.fromkeys(needs))
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
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} is not a Parquet file, or a damaged one: write it again ({error})."
        ) from error


def _check_size(path: Path, metadata: Any) -> None:
    """Refuses a file that says itself that it unpacks to too much."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    n_bytes = sum(group.total_byte_size for group in groups)
    UnpackingLimit(path, _REMEDY).add(n_bytes, n_rows=metadata.num_rows)


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
