"""One part: its rows are read, predicted and written, whole or not at all.

It may be done twice, anywhere, with the same result. Its hash is written first, into a folder next
to it: a part that is there can be told from one that was damaged since.

    OUT/hashes/part-00000.parquet   the sha256 of
    OUT/part-00000.parquet
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.core.storage import write_bytes, write_text
from litotes.data.tables.spans import Span
from litotes.prediction.batch_predictor import BatchPredictor
from litotes.prediction.predictor import Predictor
from litotes.prediction.tables.folder_request import FolderRequest
from litotes.prediction.tables.formats import PART_FORMATS, Key, PredictionTable
from litotes.prediction.tables.input import InputTable

HASHES = "hashes"
_MAX_ROWS_NAMED = 3  # bad rows in an error message; more are only counted


@dataclass(frozen=True)
class PartJob:
    """What a worker needs to know.

    model: the identities of the models, which must be the same on every worker. stamp: size and
    time of the input when its rows were counted.
    """

    request: FolderRequest
    batch_predictor: BatchPredictor
    model: tuple[str, ...]
    key_type: str
    span: Span
    stamp: tuple[int, int]
    file: Path


def predict_part(job: PartJob, watch: Watch) -> int:
    """Writes the file of this part; returns how many of its texts are unreadable."""
    predictor = _checked_predictor(job.batch_predictor, job.model)
    texts, key = _read_rows(job)
    predictions = []
    for prediction in predictor.stream(texts):
        predictions.append(prediction)
        watch("answering", len(predictions), job.span.n_rows, job.file.name)
    columns = job.request.columns(predictor.tasks)
    table = PredictionTable(columns, predictions, key, job.request.keep_formulas)
    content = PART_FORMATS[job.request.format](table)
    write_hash(job.file, sha256(content).hexdigest())
    write_bytes(job.file, content)
    return sum(prediction.unreadable for prediction in predictions)


def write_hash(part: Path, hash: str) -> None:
    write_text(part.parent / HASHES / part.name, hash)


def read_hash(part: Path) -> str | None:
    """What the hash of a part must be; None where that is not known."""
    file = part.parent / HASHES / part.name
    return file.read_text("utf-8", errors="replace") if file.is_file() else None


def _read_rows(job: PartJob) -> tuple[list[str | tuple[str, str]], Key | None]:
    """Texts and their key; all bad rows are reported together, to be mended together."""
    request = job.request
    table = InputTable(Path(job.span.file), request.column, request.pair)
    texts, keys, bad = [], [], []
    for row in job.span.rows(request.needs()):
        try:
            texts.append(table.text_of(row))
        except UserError as error:
            bad.append(str(error))
            continue
        if request.key is not None:
            keys.append(row.value(request.key))
    _check_unchanged(table.file, job.stamp)
    if bad:
        raise UserError(_bad_rows(bad))
    return texts, None if request.key is None else Key(request.key, job.key_type, keys)


def _check_unchanged(file: Path, stamp: tuple[int, int]) -> None:
    stat = file.stat()
    if (stat.st_size, stat.st_mtime_ns) != stamp:
        raise UserError(
            f"{file} has been changed while it was read: begin anew, with another --out."
        )


def _bad_rows(errors: list[str]) -> str:
    n_more = len(errors) - _MAX_ROWS_NAMED
    more = [f"And {n_more} more rows like these."] if n_more > 0 else []
    return " ".join([*errors[:_MAX_ROWS_NAMED], *more])


@cache
def _checked_predictor(batch_predictor: BatchPredictor, model: tuple[str, ...]) -> Predictor:
    """The predictor of this process, once it is known to be the one that was asked for."""
    predictor = batch_predictor.predictor()
    if tuple(runtime.identity() for runtime in predictor.runtimes) != model:
        raise UserError(
            f"{batch_predictor.folder} on {platform.node()} is another model, or computed"
            " otherwise, than where this was started: copy the same folder, and install the same"
            " litotes, on every node."
        )
    return predictor
