"""Structured logs: one JSON object a line on stderr.

They never hold a text, a token or a path as it was sent.

A thread of its own writes the lines: a terminal or a pipe that is not read must not hold up the
answers.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

from litotes.core.json_text import to_json

_MAX_LINES = 10_000
_SECONDS_BETWEEN_WRITES = 0.1
_FLUSH_SECONDS = 0.2


class Log:
    """Collects lines and writes them a moment later.

    When `stream` is not read any more, the oldest lines are dropped and counted; when it is full or
    closed, those that should be written. on_loss: called with their number.
    """

    def __init__(
        self, stream: IO[str] | None = None, *, on_loss: Callable[[int], object] = lambda n: None
    ) -> None:
        self._stream, self._on_loss = stream, on_loss
        self._lines: deque[tuple[float, str, dict[str, Any]]] = deque(maxlen=_MAX_LINES)
        self._n_lost = 0
        self._is_closed = threading.Event()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self.is_stuck = False
        """The last flush timed out: the stream is not read, and a thread hangs in the middle of a
        line.
        """

    def write(self, event: str, **content: Any) -> None:
        if len(self._lines) == _MAX_LINES:
            self._lose(1)
        self._lines.append((time.time(), event, content))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="litotes-log", daemon=True)
            self._thread.start()

    def write_error(self, event: str, error: BaseException, **content: Any) -> None:
        """Where an error came from, without its message, which may quote a text."""
        frames = traceback.extract_tb(error.__traceback__)
        trace = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        self.write(event, error=type(error).__name__, trace=trace, **content)

    def flush(self) -> None:
        """Writes the lines now, but does not wait long for a stream that is not read: the service
        must be able to end.
        """
        writer = threading.Thread(target=self._write_lines, name="litotes-last-lines", daemon=True)
        writer.start()
        writer.join(_FLUSH_SECONDS)
        self.is_stuck = writer.is_alive()

    def close(self) -> None:
        """Lines that are written after this wait for a `flush`."""
        self._is_closed.set()
        self.flush()

    def _run(self) -> None:
        while not self._is_closed.wait(_SECONDS_BETWEEN_WRITES):
            self._write_lines()

    def _write_lines(self) -> None:
        with self._writing:
            lines = [_format_line(*self._lines.popleft()) for _ in range(len(self._lines))]
            n_lines, n_lost = len(lines), self._n_lost
            if n_lost:
                lines.append(_format_line(time.time(), "lines_lost", {"n": n_lost}))
            if not lines:
                return
            try:
                _write_text(self._stream or sys.stderr, "\n".join(lines) + "\n")
            except (OSError, ValueError):  # full or closed: answers matter more than lines
                self._lose(n_lines)
            else:
                self._n_lost -= n_lost

    def _lose(self, n: int) -> None:
        self._n_lost += n
        self._on_loss(n)


def _write_text(stream: IO[str] | None, text: str) -> None:
    if stream is None:  # as Python has it where stderr was closed before the start
        raise ValueError("closed")
    stream.write(text)
    stream.flush()


def _format_line(when: float, event: str, content: dict[str, Any]) -> str:
    utc = datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds")
    return to_json({"time": utc, "event": event, **content})


class ServiceLogHandler(logging.Handler):
    """Writes uvicorn's warnings to the same log; an exception without its message."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._log.write_error("server", record.exc_info[1], level=record.levelname)
        else:
            # not formatted: the arguments may hold what was sent
            self._log.write("server", level=record.levelname, message=record.msg)
