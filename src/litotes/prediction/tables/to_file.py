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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from litotes.core.errors import Stopped, UserError, write_errors
from litotes.core.numbers import require_count
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.storage import (
    LOCK,
    Target,
    find_foreign_file,
    locked,
    make_own_folder,
    open_own_file,
    open_stream,
)
from litotes.data.tables.files import require_file
from litotes.prediction.predictor import Predictor
from litotes.prediction.tables.answered_rows import (
    FileResult,
    InputRow,
    Tally,
    answer_rows,
    input_rows,
    is_written,
)
from litotes.prediction.tables.formats import LINE_FORMATS, LineFormat
from litotes.prediction.tables.layout import AnsweredRow, Layout
from litotes.prediction.tables.request import TableRequest, make_layout
from litotes.prediction.tables.resume import read_record, write_record

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

ROWS, STATE = "rows", "state.json"
_ROWS_BETWEEN_STATES = 1024
_CHUNK = 1 << 20


def predict_to_file(
    predictor: Predictor, request: TableRequest, out: Path, *, watch: Watch = ignore_progress
) -> FileResult:
    """Writes every row of the only table, with its prediction, to `out`, in a format of lines."""
    line_format = pick(LINE_FORMATS, request.format, "format of lines")
    target = _check_target(request, out)
    layout = make_layout(request, [request.source], predictor.tasks)
    n_total = sum(1 for _ in _input_rows(request, ()))  # reports a bad table now, not after hours
    writer = _RowWriter(line_format, layout, request.bad_rows)
    if target.is_stream:
        tally = _predict_to_stream(predictor, request, out, writer, n_total, watch)
        return FileResult(layout, tally)
    part = target.path.with_name(f"{target.path.name}.part")
    make_own_folder(part)  # rows that are not whole are not for others to read
    with locked(part):
        _check_part(part)
        made_from = _made_from(predictor, request, layout)
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
            _write_predictions(predictor, request, rows, n_total, watch)
        with write_errors(out):
            (part / ROWS).replace(target.path)
            (part / STATE).unlink()
    with suppress(OSError):  # another process may be about to use it
        part.rmdir()
    return FileResult(layout, rows.tally)


def _check_target(request: TableRequest, out: Path) -> Target:
    target = request.check_target(out)
    if not request.source.is_file():
        require_file(request.source)
        raise UserError(
            f"{request.source} is no ordinary file, which could be read again from its start: save"
            " it to one."
        )
    return target


def _input_rows(request: TableRequest, kept: Sequence[str]) -> Iterator[InputRow]:
    return input_rows(request, request.rows(keeps=kept), kept)


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
    request: TableRequest,
    out: Path,
    writer: _RowWriter,
    n_total: int,
    watch: Watch,
) -> Tally:
    tally = Tally()
    with write_errors(out), open_stream(out) as stream:
        stream.write(writer.header())
        for row in answer_rows(predictor, _input_rows(request, writer.layout.kept)):
            stream.write(writer.row(row))
            tally = tally.add(row.prediction, request.bad_rows)
            watch("answering", tally.n_read, n_total, "")
    return tally


@dataclass(frozen=True)
class _RowWriter:
    """Answered rows as the bytes of a file. bad_rows: see `BAD_ROWS`."""

    format: LineFormat
    layout: Layout
    bad_rows: str

    def header(self) -> bytes:
        return self.format.header(self.layout).encode()

    def row(self, row: AnsweredRow) -> bytes:
        if not is_written(row.prediction, self.bad_rows):
            return b""
        return self.format.rows(self.layout, [row]).encode()


@dataclass(frozen=True)
class _Progress:
    """What is safe on disk: what became of these rows, so many bytes, and their hash."""

    tally: Tally = field(default_factory=Tally)
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
        self.tally = safe.tally
        self.n_safe = safe.tally.n_read

    def write_header(self) -> None:
        self._write(self._writer.header())

    @property
    def layout(self) -> Layout:
        return self._writer.layout

    def write_row(self, row: AnsweredRow) -> None:
        self._write(self._writer.row(row))
        self.tally = self.tally.add(row.prediction, self._writer.bad_rows)
        if self.tally.n_read - self.n_safe >= _ROWS_BETWEEN_STATES:
            self.make_safe()

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self._hash.update(content)

    def make_safe(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        progress = _Progress(self.tally, self._stream.tell(), self._hash.hexdigest())
        write_record(self.part / STATE, self._made_from, **asdict(progress))
        self.n_safe = self.tally.n_read


def _write_predictions(
    predictor: Predictor, request: TableRequest, rows: _RowFile, n_total: int, watch: Watch
) -> None:
    left = islice(_input_rows(request, rows.layout.kept), rows.tally.n_read, None)
    try:
        for row in answer_rows(predictor, left):
            rows.write_row(row)
            watch("answering", rows.tally.n_read, n_total, "")
        rows.make_safe()
    except KeyboardInterrupt as error:
        raise Stopped(
            f"Stopped; {rows.n_safe} rows are kept in {rows.part}. Start the same command again"
            " to go on."
        ) from error


def _made_from(predictor: Predictor, request: TableRequest, layout: Layout) -> dict[str, Any]:
    """Everything the predictions depend on; see `resume`."""
    stat = request.source.stat()
    return {
        "file": [request.source.name, stat.st_size, stat.st_mtime_ns],
        **request.made_from(layout),
        "model": list(predictor.identities),
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
        Tally.from_json(state["tally"]),
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
