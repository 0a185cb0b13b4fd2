"""One part: its rows are read, predicted and written, whole or not at all.

It may be done twice, anywhere, with the same result. Its record is written first, into a folder
next to it: a part that is there can be told from one that was damaged since.

    OUT/records/part-00000.parquet.json   its sha256, and what became of its rows
    OUT/part-00000.parquet
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import load_json
from litotes.core.progress import Watch
from litotes.core.storage import write_bytes, write_json
from litotes.core.values import BadText
from litotes.data.tables.parquet import read_arrow
from litotes.data.tables.spans import Span
from litotes.prediction.batch_predictor import BatchPredictor
from litotes.prediction.predictor import Predictor
from litotes.prediction.tables.answered_rows import (
    InputRow,
    Tally,
    answer_rows,
    input_rows,
    is_written,
)
from litotes.prediction.tables.formats import FORMATS, encode_parquet
from litotes.prediction.tables.layout import AnsweredRow, Layout
from litotes.prediction.tables.request import TableRequest

RECORDS = "records"
_MAX_ROWS_NAMED = 3  # bad rows in an error message; more are only counted


@dataclass(frozen=True)
class PartJob:
    """What a worker needs to know.

    model: the identities of the models, which must be the same on every worker. stamp: size and
    time of the input when its rows were counted.
    """

    request: TableRequest
    batch_predictor: BatchPredictor
    model: tuple[str, ...]
    layout: Layout
    span: Span
    stamp: tuple[int, int]
    file: Path


@dataclass(frozen=True)
class PartRecord:
    """The hash of a part as it was written, and what became of its rows."""

    sha256: str
    tally: Tally

    def as_json(self) -> dict[str, Any]:
        return {"sha256": self.sha256, "tally": self.tally.as_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> PartRecord:
        return cls(str(content["sha256"]), Tally.from_json(content["tally"]))


def predict_part(job: PartJob, watch: Watch) -> None:
    """Writes the file of this part."""
    predictor = _checked_predictor(job.batch_predictor, job.model)
    tally = Tally()
    written: list[AnsweredRow] = []
    places: list[int] = []  # of the rows that are written
    bad_rows = job.request.bad_rows
    for place, row in enumerate(answer_rows(predictor, _read_rows(job))):
        tally = tally.add(row.prediction, bad_rows)
        if is_written(row.prediction, bad_rows):
            written.append(row)
            places.append(place)
        watch("answering", tally.n_read, job.span.n_rows, job.file.name)
    content = _encode(job, written, places)
    write_part_record(job.file, PartRecord(sha256(content).hexdigest(), tally))
    write_bytes(job.file, content)


def _encode(job: PartJob, rows: Sequence[AnsweredRow], places: Sequence[int]) -> bytes:
    file = Path(job.span.file)
    if job.layout.is_as_stored:
        start = job.span.start.row
        kept = read_arrow(file, job.layout.kept, start, job.span.n_rows).take(places)
        _check_unchanged(file, job.stamp)
        return encode_parquet(job.layout, rows, kept)
    return FORMATS[job.request.format](job.layout, rows)


def write_part_record(part: Path, record: PartRecord) -> None:
    write_json(part.parent / RECORDS / f"{part.name}.json", record.as_json())


def read_part_record(part: Path) -> PartRecord | None:
    """What was written with a part; None where that is not known."""
    file = part.parent / RECORDS / f"{part.name}.json"
    try:
        return PartRecord.from_json(load_json(file)) if file.is_file() else None
    except (ValueError, LookupError, TypeError, AttributeError):  # damaged: the part is made again
        return None


def _read_rows(job: PartJob) -> list[InputRow]:
    """All bad rows are reported together, to be mended together, where they stop the work."""
    request, keeps = job.request, job.layout.kept
    found, bad = [], []
    rows = job.span.rows(request.texts, keeps=keeps, lenient=True)
    for row in input_rows(replace(request, bad_rows="empty"), rows, keeps):
        found.append(row)
        if isinstance(row.asked, BadText):
            bad.append(row.asked.problem)
    _check_unchanged(Path(job.span.file), job.stamp)
    if bad and request.bad_rows == "stop":
        raise UserError(_bad_rows(bad))
    return found


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
    if predictor.identities != model:
        raise UserError(
            f"{batch_predictor.folder} on {platform.node()} is another model, or computed"
            " otherwise, than where this was started: copy the same folder, and install the same"
            " litotes, on every node."
        )
    return predictor
