"""A table of any length becomes a file of answers, in constant memory, and a killed run goes on
where it was.

    OUT.part/rows         the answers so far, in the order of the texts
    OUT.part/state.json   how many of them are safe, and what they were made from; written after every chunk, when its rows are on disk
    OUT                   the finished file, renamed into its place

A run that is killed between two states finds rows that the state does not know: they are cut off
and answered again. So no row is lost and none is there twice.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO, Any

from litotes.core.errors import Stopped, UserError
from litotes.core.progress import Watch, unwatched
from litotes.core.registry import pick
from litotes.core.storage import LOCK, is_staged, locked, write_json
from litotes.core.values import Prediction
from litotes.data.files import require_file
from litotes.data.rows import Row, read_rows
from litotes.predict.predictor import Predictor

ROWS, STATE = "rows", "state.json"
_ROWS_BETWEEN_STATES = 1024


def as_json(prediction: Prediction) -> dict[str, Any]:
    """The stable form: {"text": …, task: {"label": …, "probability": …}, "truncated": …}."""
    answers = {
        name: {"label": answer.label, "probability": answer.probability}
        for name, answer in prediction.answers.items()
    }
    return {"text": prediction.text, **answers, "truncated": prediction.truncated}


def _jsonl_line(prediction: Prediction) -> str:
    return json.dumps(as_json(prediction), ensure_ascii=False) + "\n"


def _csv_line(prediction: Prediction) -> str:
    answers = [
        value
        for answer in prediction.answers.values()
        for value in (answer.label, answer.probability)
    ]
    return _csv([prediction.text, *answers, prediction.truncated])


def _csv_header(tasks: Sequence[str]) -> str:
    return _csv(
        [
            "text",
            *(column for task in tasks for column in (task, f"{task}_probability")),
            "truncated",
        ]
    )


def _csv(values: Sequence[object]) -> str:
    target = StringIO()
    csv.writer(target).writerow(values)
    return target.getvalue()


@dataclass(frozen=True)
class Format:
    """How answers are written down. header: what comes first, of the tasks' names."""

    header: Callable[[Sequence[str]], str]
    line: Callable[[Prediction], str]


FORMATS = {"csv": Format(_csv_header, _csv_line), "jsonl": Format(lambda _: "", _jsonl_line)}


@dataclass(frozen=True)
class Table:
    """The file to read, the column of its texts, and that of second texts for a model of pairs."""

    file: Path
    column: str = "text"
    pair: str | None = None

    def rows(self) -> Iterator[Row]:
        return read_rows(
            self.file, needs=[self.column] if self.pair is None else [self.column, self.pair]
        )

    def asked(self, row: Row) -> str | tuple[str, str]:
        return (
            row.text(self.column)
            if self.pair is None
            else (row.text(self.column), row.text(self.pair))
        )


def score_table(
    predictor: Predictor, table: Table, out: Path, *, format: str = "csv", watch: Watch = unwatched
) -> int:
    """Writes an answer for every row of the table to `out`, and says how many there are."""
    kind = pick(FORMATS, format, "format")
    _check_target(table, out)
    total = sum(1 for _ in map(table.asked, table.rows()))  # a bad row is told now, not after hours
    part = out.with_name(f"{out.name}.part")
    with locked(part):
        _check_part(part)
        made_from = _made_from(predictor, table, format)
        n_rows, n_bytes = _kept(part, made_from)
        if not n_bytes:
            # of a run that had finished: it must not speak for new rows
            (part / STATE).unlink(missing_ok=True)
        with (part / ROWS).open("ab") as stream:
            stream.truncate(n_bytes)
            stream.seek(0, os.SEEK_END)
            if not n_bytes:
                stream.write(kind.header(list(predictor.tasks)).encode())
            keeper = _Keeper(part, stream, made_from, n_rows)
            try:
                _answer(predictor, table, kind, keeper, total, watch)
            except KeyboardInterrupt as error:
                raise Stopped(
                    f"Stopped; {keeper.n_safe} rows are kept in {part}. Start the same command"
                    " again to go on."
                ) from error
        (part / ROWS).replace(out)
        (part / STATE).unlink()
    with suppress(OSError):  # another process may be about to use it
        part.rmdir()
    return keeper.n_rows


def _check_target(table: Table, out: Path) -> None:
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
    for path in part.iterdir():
        if path.name not in (ROWS, STATE, LOCK) and not is_staged(path):
            raise UserError(
                f"{part} is where answers are kept until they are whole, but it holds {path.name}."
                " Move it away."
            )


class _Keeper:
    """Writes rows, and from time to time how many are safe on disk."""

    def __init__(
        self, part: Path, stream: IO[bytes], made_from: dict[str, Any], n_rows: int
    ) -> None:
        self._part, self._stream, self._made_from = part, stream, made_from
        self.n_rows = self.n_safe = n_rows

    def add(self, line: str) -> None:
        self._stream.write(line.encode())
        self.n_rows += 1
        if self.n_rows - self.n_safe >= _ROWS_BETWEEN_STATES:
            self.make_safe()

    def make_safe(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        write_json(
            self._part / STATE,
            {"made_from": self._made_from, "n_rows": self.n_rows, "n_bytes": self._stream.tell()},
        )
        self.n_safe = self.n_rows


def _answer(
    predictor: Predictor, table: Table, kind: Format, keeper: _Keeper, total: int, watch: Watch
) -> None:
    rows = islice(table.rows(), keeper.n_rows, None)
    for prediction in predictor.stream(map(table.asked, rows)):
        keeper.add(kind.line(prediction))
        watch("answering", keeper.n_rows, total, "")
    keeper.make_safe()


def _made_from(predictor: Predictor, table: Table, format: str) -> dict[str, Any]:
    """What the answers depend on: those of another file, model or way of computing must not be
    joined to these.
    """
    stat = table.file.stat()
    return {
        "file": [table.file.name, stat.st_size, stat.st_mtime_ns],
        "columns": [table.column, table.pair],
        "format": format,
        "model": [runtime.identity() for runtime in predictor.runtimes],
    }


def _kept(part: Path, made_from: dict[str, Any]) -> tuple[int, int]:
    """The rows and bytes that an earlier run has made safe; none where there was no such run, or
    where it had finished.
    """
    if not (part / STATE).is_file() or not (part / ROWS).is_file():
        return 0, 0
    try:
        state = json.loads((part / STATE).read_text("utf-8"))
        n_rows, n_bytes, before = (
            int(state["n_rows"]),
            int(state["n_bytes"]),
            dict(state["made_from"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{part / STATE} is damaged ({error}). Delete {part} to begin anew."
        ) from error
    changed = [name for name, value in made_from.items() if before.get(name) != value]
    if changed:
        raise UserError(
            f"{part} holds answers of an earlier run, which had another {' and '.join(changed)}."
            " Delete it to begin anew, or choose another --out."
        )
    if (part / ROWS).stat().st_size < n_bytes:
        raise UserError(f"{part / ROWS} is shorter than it was. Delete {part} to begin anew.")
    return n_rows, n_bytes
