"""One table becomes one Parquet file: its parts, which a stopped run keeps, are joined.

OUT.part/    the parts, as `to_folder` keeps them
OUT          the finished file, renamed into place
"""

from __future__ import annotations

import shutil
from pathlib import Path

from litotes.core.errors import UserError, write_errors
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import locked, make_folder
from litotes.prediction.batch_predictor import BatchPredictor
from litotes.prediction.tables.answered_rows import FileResult
from litotes.prediction.tables.request import TableRequest
from litotes.prediction.tables.to_folder import (
    BEGUN,
    FolderResult,
    local_runner,
    predict_to_folder,
)

_JOINED = "joined"


def predict_to_parquet(
    request: TableRequest,
    batch_predictor: BatchPredictor,
    out: Path,
    *,
    watch: Watch = ignore_progress,
) -> FileResult:
    """Writes every row of the only table, with its prediction, to `out`."""
    target = request.check_target(out)
    if target.is_stream:
        raise UserError(f"{out} is a pipe or a device: a Parquet file is written to a file.")
    parts = target.path.with_name(f"{target.path.name}.part")
    make_folder(parts)
    result = predict_to_folder(request, batch_predictor, parts, runner=local_runner(1), watch=watch)
    for reason in result.failures.values():
        raise UserError(reason)
    with locked(parts), write_errors(out):
        make_folder(parts / BEGUN)  # which the next run removes, should this one be killed
        _join(result, parts / BEGUN / _JOINED)
        (parts / BEGUN / _JOINED).replace(target.path)
    shutil.rmtree(parts, ignore_errors=True)
    return FileResult(result.plan.layout, result.tally)


def _join(result: FolderResult, file: Path) -> None:
    """A part becomes a group of rows."""
    import pyarrow.parquet as pq

    names = list(result.plan.parts())
    schema = pq.read_schema(result.out / names[0])
    with pq.ParquetWriter(file, schema) as writer:
        for name in names:
            writer.write_table(pq.read_table(result.out / name, schema=schema))
