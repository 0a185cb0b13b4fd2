"""One part: its rows are read, answered and written, whole or not at all.

May be done twice, anywhere, with the same result.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.core.storage import write_bytes
from litotes.data.spans import Span
from litotes.predict.batch_predictor import BatchPredictor
from litotes.predict.predictor import Predictor
from litotes.predict.tables.file import Table
from litotes.predict.tables.request import Request
from litotes.predict.tables.writing import PART_FORMATS, Answers

_N_TOLD = 3  # bad rows named; more are only counted


@dataclass(frozen=True)
class PartJob:
    """What a worker needs to know.

    model: the identities of what answers, which must be the same everywhere. stamp: size and time
    of the input when it was counted.
    """

    request: Request
    asked: BatchPredictor
    model: tuple[str, ...]
    key_type: str
    span: Span
    stamp: tuple[int, int]
    file: Path


def work(job: PartJob, watch: Watch) -> None:
    predictor = _checked(job.asked, job.model)
    texts, keys = _read(job)
    predictions = []
    for prediction in predictor.stream(texts):
        predictions.append(prediction)
        watch("answering", len(predictions), job.span.n_rows, job.file.name)
    request = job.request
    answers = Answers(
        predictor.tasks, predictions, request.key, job.key_type, keys, request.has_text
    )
    # A node that was believed dead may still be writing the same part: neither must find half of
    # the other's file.
    write_bytes(
        job.file, PART_FORMATS[request.format](answers), writer=f"{platform.node()}-{os.getpid()}-"
    )


def _read(job: PartJob) -> tuple[list[str | tuple[str, str]], list[object]]:
    """Texts and keys. All bad rows are told together, so that they can be mended together."""
    request = job.request
    table = Table(Path(job.span.file), request.column, request.pair)
    texts, keys, bad = [], [], []
    for row in job.span.rows(request.needs()):
        try:
            texts.append(table.asked(row))
        except UserError as error:
            bad.append(str(error))
            continue
        keys.append(None if request.key is None else row.value(request.key))
    stat = table.file.stat()
    if (stat.st_size, stat.st_mtime_ns) != job.stamp:
        raise UserError(
            f"{table.file} has been changed while it was read: begin anew, with another --out."
        )
    if bad:
        more = f" And {len(bad) - _N_TOLD} more rows like these." if len(bad) > _N_TOLD else ""
        raise UserError(" ".join(bad[:_N_TOLD]) + more)
    return texts, keys


@cache
def _checked(asked: BatchPredictor, model: tuple[str, ...]) -> Predictor:
    """The predictor of this process, once it is known to be the one that was asked for."""
    predictor = asked.predictor()
    if tuple(runtime.identity() for runtime in predictor.runtimes) != model:
        raise UserError(
            f"{asked.folder} on {platform.node()} is another model, or computed otherwise, than"
            " where this was started: copy the same folder, and install the same litotes, on every"
            " node."
        )
    return predictor
