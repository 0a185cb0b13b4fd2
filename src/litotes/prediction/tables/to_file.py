"""One table becomes one file of predictions, in constant memory; a killed run resumes where it was.

    OUT.part/rows         the predictions so far, in the order of the texts
    OUT.part/state.json   how many of them are safe, and what they were made from;
                          written after every chunk, once its rows are on disk
    OUT                   the finished file, renamed into place

A run that was killed between two states leaves rows that the state does not know: the next run cuts
them off and computes them again. So no row is lost and none is there twice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from litotes.core.errors import Stopped, UserError
from litotes.core.numbers import require_count
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.storage import LOCK, find_foreign_file, locked
from litotes.core.values import Prediction
from litotes.data.tables.files import require_file
from litotes.prediction.columns import columns_of
from litotes.prediction.predictor import Predictor
from litotes.prediction.tables.formats import LINE_FORMATS, LineFormat, PredictionTable
from litotes.prediction.tables.input import InputTable
from litotes.prediction.tables.resume import read_record, write_record

ROWS, STATE = "rows", "state.json"
_ROWS_BETWEEN_STATES = 1024


def predict_to_file(
    predictor: Predictor,
    table: InputTable,
    out: Path,
    *,
    format: str = "csv",
    keep_formulas: bool = False,
    watch: Watch = ignore_progress,
) -> int:
    """Writes a prediction for every row of the table to `out`; returns how many there are.

    keep_formulas: see `PredictionTable`.
    """
    line_format = pick(LINE_FORMATS, format, "format")
    _check_target(table, out)
    n_total = sum(1 for _ in table.texts())  # reports a bad row now, not after hours
    part = out.with_name(f"{out.name}.part")
    with locked(part):
        _check_part(part)
        made_from = _made_from(predictor, table, format, keep_formulas)
        n_rows, n_bytes = _safe_progress(part, made_from)
        if not n_bytes:
            # left by a run that had finished: it must not vouch for new rows
            (part / STATE).unlink(missing_ok=True)
        with (part / ROWS).open("ab") as stream:
            stream.truncate(n_bytes)
            stream.seek(0, os.SEEK_END)
            empty = PredictionTable(columns_of(predictor.tasks), [], keep_formulas=keep_formulas)
            rows = _RowFile(part, stream, line_format, empty, made_from, n_rows=n_rows)
            if not n_bytes:
                rows.write_header()
            _write_predictions(predictor, table, rows, n_total, watch)
        (part / ROWS).replace(out)
        (part / STATE).unlink()
    with suppress(OSError):  # another process may be about to use it
        part.rmdir()
    return rows.n_rows


def _check_target(table: InputTable, out: Path) -> None:
    if not out.name or out.is_dir():
        raise UserError(f"--out needs the name of a file; {out} is a folder.")
    if not table.file.is_file():
        require_file(table.file)
        raise UserError(
            f"{table.file} is no ordinary file, which could be read again from its start: save it"
            " to one."
        )
    if out.exists() and out.samefile(table.file):
        raise UserError(f"{out} is the table itself: choose another --out.")


def _check_part(part: Path) -> None:
    foreign = find_foreign_file(part, (ROWS, STATE, LOCK))
    if foreign is not None:
        raise UserError(
            f"{part} is where answers are kept until they are whole, but it holds {foreign}. Move"
            " it away."
        )


class _RowFile:
    """The file of rows, and the state that says how many of them are safe on disk."""

    def __init__(
        self,
        part: Path,
        stream: IO[bytes],
        line_format: LineFormat,
        empty: PredictionTable,
        made_from: Mapping[str, Any],
        *,
        n_rows: int,
    ) -> None:
        self.part, self._stream, self._made_from = part, stream, made_from
        self._format, self._empty = line_format, empty
        self.n_rows = self.n_safe = n_rows

    def write_header(self) -> None:
        self._stream.write(self._format.header(self._empty).encode())

    def write_row(self, prediction: Prediction) -> None:
        row = replace(self._empty, predictions=[prediction])
        self._stream.write(self._format.rows(row).encode())
        self.n_rows += 1
        if self.n_rows - self.n_safe >= _ROWS_BETWEEN_STATES:
            self.make_safe()

    def make_safe(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        n_bytes = self._stream.tell()
        write_record(self.part / STATE, self._made_from, n_rows=self.n_rows, n_bytes=n_bytes)
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
        "format": format,
        "treatment of formulas": "kept" if keep_formulas else "guarded",
        "model": [runtime.identity() for runtime in predictor.runtimes],
    }


def _safe_progress(part: Path, made_from: Mapping[str, Any]) -> tuple[int, int]:
    """The rows and bytes that an earlier run made safe: 0 where there was none, or it finished."""
    if not (part / STATE).is_file() or not (part / ROWS).is_file():
        return 0, 0
    n_rows, n_bytes = read_record(part / STATE, made_from, _parse_progress)
    if (part / ROWS).stat().st_size < n_bytes:
        raise UserError(f"{part / ROWS} is shorter than it was. Delete {part} to begin anew.")
    return n_rows, n_bytes


def _parse_progress(state: Mapping[str, Any]) -> tuple[int, int]:
    return require_count(state["n_rows"]), require_count(state["n_bytes"])
