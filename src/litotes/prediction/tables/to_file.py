"""One table becomes one file of predictions, in constant memory; a killed run resumes where it was.

    OUT.part/rows         the predictions so far, in the order of the texts
    OUT.part/state.json   how many of them are safe, their hash, and what they were made from;
                          written after every chunk, once its rows are on disk
    OUT                   the finished file, renamed into place

A run that was killed between two states leaves rows that the state does not know: the next run cuts
them off and computes them again. So no row is lost and none is there twice. A pipe or a device has
none of this: it is written to as the predictions come.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from litotes.core.errors import Stopped, UserError, write_errors
from litotes.core.numbers import require_count
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.storage import LOCK, find_foreign_file, locked, make_own_folder, open_own_file
from litotes.core.targets import Target, open_stream
from litotes.core.values import Prediction
from litotes.data.tables.files import require_file
from litotes.prediction.columns import columns_of
from litotes.prediction.predictor import Predictor
from litotes.prediction.tables.formats import LINE_FORMATS, LineFormat, PredictionTable
from litotes.prediction.tables.input import InputTable
from litotes.prediction.tables.resume import read_record, write_record

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

ROWS, STATE = "rows", "state.json"
_ROWS_BETWEEN_STATES = 1024
_CHUNK = 1 << 20


@dataclass(frozen=True)
class FileResult:
    """How many rows a finished file has, and how many of their texts are unreadable."""

    n_rows: int
    n_unreadable: int


def predict_to_file(
    predictor: Predictor,
    table: InputTable,
    out: Path,
    *,
    format: str = "csv",
    keep_formulas: bool = False,
    watch: Watch = ignore_progress,
) -> FileResult:
    """Writes a prediction for every row of the table to `out`.

    keep_formulas: see `PredictionTable`.
    """
    line_format = pick(LINE_FORMATS, format, "format")
    target = _check_target(table, out)
    n_total = sum(1 for _ in table.texts())  # reports a bad row now, not after hours
    empty = PredictionTable(columns_of(predictor.tasks), [], keep_formulas=keep_formulas)
    writer = _RowWriter(line_format, empty)
    if target.is_stream:
        return _predict_to_stream(predictor, table, out, writer, n_total, watch)
    part = target.path.with_name(f"{target.path.name}.part")
    make_own_folder(part)  # rows that are not whole are not for others to read
    with locked(part):
        _check_part(part)
        made_from = _made_from(predictor, table, format, keep_formulas)
        safe, hash_so_far = _safe_progress(part, made_from)
        if not safe.n_bytes:
            # left by a run that had finished: it must not vouch for new rows
            (part / STATE).unlink(missing_ok=True)
        with write_errors(part / ROWS), _open_rows(part / ROWS) as stream:
            stream.truncate(safe.n_bytes)
            stream.seek(0, os.SEEK_END)
            rows = _RowFile(part, stream, writer, made_from, safe, hash_so_far)
            if not safe.n_bytes:
                rows.write_header()
            _write_predictions(predictor, table, rows, n_total, watch)
        with write_errors(out):
            (part / ROWS).replace(target.path)
            (part / STATE).unlink()
    with suppress(OSError):  # another process may be about to use it
        part.rmdir()
    return FileResult(rows.n_rows, rows.n_unreadable)


def _check_target(table: InputTable, out: Path) -> Target:
    target = table.check_target(out)
    if not table.file.is_file():
        require_file(table.file)
        raise UserError(
            f"{table.file} is no ordinary file, which could be read again from its start: save it"
            " to one."
        )
    return target


def _check_part(part: Path) -> None:
    foreign = find_foreign_file(part, (ROWS, STATE, LOCK))
    if foreign is not None:
        raise UserError(
            f"{part} is where answers are kept until they are whole, but it holds {foreign}. Move"
            " it away."
        )


def _open_rows(file: Path) -> BinaryIO:
    return os.fdopen(open_own_file(file, os.O_RDWR), "r+b")


def _predict_to_stream(
    predictor: Predictor,
    table: InputTable,
    out: Path,
    writer: _RowWriter,
    n_total: int,
    watch: Watch,
) -> FileResult:
    n_rows = n_unreadable = 0
    with write_errors(out), open_stream(out) as stream:
        stream.write(writer.header())
        for prediction in predictor.stream(table.texts()):
            stream.write(writer.row(prediction))
            n_rows += 1
            n_unreadable += prediction.unreadable
            watch("answering", n_rows, n_total, "")
    return FileResult(n_rows, n_unreadable)


@dataclass(frozen=True)
class _RowWriter:
    """Predictions as the bytes of a file."""

    format: LineFormat
    empty: PredictionTable

    def header(self) -> bytes:
        return self.format.header(self.empty).encode()

    def row(self, prediction: Prediction) -> bytes:
        return self.format.rows(replace(self.empty, predictions=[prediction])).encode()


@dataclass(frozen=True)
class _Progress:
    """What is safe on disk: so many rows, so many of them unreadable, so many bytes, and their
    hash.
    """

    n_rows: int = 0
    n_unreadable: int = 0
    n_bytes: int = 0
    rows_sha256: str = ""


class _RowFile:
    """The file of rows, and the state that says how many of them are safe on disk."""

    def __init__(
        self,
        part: Path,
        stream: BinaryIO,
        writer: _RowWriter,
        made_from: Mapping[str, Any],
        safe: _Progress,
        hash_so_far: Hash,
    ) -> None:
        self.part, self._stream, self._writer = part, stream, writer
        self._made_from, self._hash = made_from, hash_so_far
        self.n_rows = self.n_safe = safe.n_rows
        self.n_unreadable = safe.n_unreadable

    def write_header(self) -> None:
        self._write(self._writer.header())

    def write_row(self, prediction: Prediction) -> None:
        self._write(self._writer.row(prediction))
        self.n_rows += 1
        self.n_unreadable += prediction.unreadable
        if self.n_rows - self.n_safe >= _ROWS_BETWEEN_STATES:
            self.make_safe()

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self._hash.update(content)

    def make_safe(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        progress = _Progress(
            self.n_rows, self.n_unreadable, self._stream.tell(), self._hash.hexdigest()
        )
        write_record(self.part / STATE, self._made_from, **asdict(progress))
        self.n_safe = self.n_rows


def _write_predictions(
    predictor: Predictor, table: InputTable, rows: _RowFile, n_total: int, watch: Watch
) -> None:
    left = islice(table.rows(), rows.n_rows, None)
    try:
        for prediction in predictor.stream(map(table.text_of, left)):
            rows.write_row(prediction)
            watch("answering", rows.n_rows, n_total, "")
        rows.make_safe()
    except KeyboardInterrupt as error:
        raise Stopped(
            f"Stopped; {rows.n_safe} rows are kept in {rows.part}. Start the same command again"
            " to go on."
        ) from error


def _made_from(
    predictor: Predictor, table: InputTable, format: str, keep_formulas: bool
) -> dict[str, Any]:
    """Everything the predictions depend on; see `resume`."""
    stat = table.file.stat()
    return {
        "file": [table.file.name, stat.st_size, stat.st_mtime_ns],
        "columns": [table.column, table.pair],
        "set of answer columns": [column.name for column in columns_of(predictor.tasks)],
        "format": format,
        "treatment of formulas": "kept" if keep_formulas else "guarded",
        "model": [runtime.identity() for runtime in predictor.runtimes],
    }


def _safe_progress(part: Path, made_from: Mapping[str, Any]) -> tuple[_Progress, Hash]:
    """What an earlier run made safe, and its hash to go on with: nothing where there was none, or
    it finished.
    """
    if not (part / STATE).is_file() or not (part / ROWS).is_file():
        return _Progress(), sha256()
    progress = read_record(part / STATE, made_from, _parse_progress)
    if (part / ROWS).stat().st_size < progress.n_bytes:
        raise UserError(f"{part / ROWS} is shorter than it was. Delete {part} to begin anew.")
    hash_so_far = _hash_start(part / ROWS, progress.n_bytes)
    if hash_so_far.hexdigest() != progress.rows_sha256:
        raise UserError(f"{part / ROWS} is not as it was written. Delete {part} to begin anew.")
    return progress, hash_so_far


def _parse_progress(state: Mapping[str, Any]) -> _Progress:
    return _Progress(
        require_count(state["n_rows"]),
        require_count(state["n_unreadable"]),
        require_count(state["n_bytes"]),
        str(state["rows_sha256"]),
    )


def _hash_start(file: Path, n_bytes: int) -> Hash:
    """The hash of the first bytes of a file."""
    found = sha256()
    with file.open("rb") as stream:
        while n_bytes > 0 and (chunk := stream.read(min(n_bytes, _CHUNK))):
            found.update(chunk)
            n_bytes -= len(chunk)
    return found
