"""Structured logs: one JSON object a line on stderr.

Never a text, never a token, never a path as it was sent.

Lines are written by a thread of their own: a terminal or a pipe that nobody reads must not hold up
the answers.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from collections import deque
from datetime import UTC, datetime
from typing import IO, Any

_MAX_LINES = 10_000
_SECONDS_BETWEEN_WRITES = 0.1
_LAST_SECONDS = 0.2


class Log:
    """Collects lines and writes them soon.

    When the reader of `stream` has stopped, the oldest lines are lost and counted.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream
        self._lines: deque[tuple[float, str, dict[str, Any]]] = deque(maxlen=_MAX_LINES)
        self._n_lost = 0
        self._is_over = threading.Event()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self.is_stuck = False
        """The last flush waited in vain: nobody reads, and a thread is held in the middle of a
        line.
        """

    def write(self, event: str, **content: Any) -> None:
        if len(self._lines) == _MAX_LINES:
            self._n_lost += 1
        self._lines.append((time.time(), event, content))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="litotes-log", daemon=True)
            self._thread.start()

    def trace(self, event: str, error: BaseException, **content: Any) -> None:
        """Where an error came from. Its message is left out: it may quote a text."""
        frames = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        self.write(event, error=type(error).__name__, trace=frames, **content)

    def flush(self) -> None:
        """Waits until the lines are out, but not for a reader that has stopped: the service must be
        able to end.
        """
        last = threading.Thread(target=self._write_out, name="litotes-last-lines", daemon=True)
        last.start()
        last.join(_LAST_SECONDS)
        self.is_stuck = last.is_alive()

    def _write_out(self) -> None:
        with self._writing:
            lines = [_line(*self._lines.popleft()) for _ in range(len(self._lines))]
            if self._n_lost:
                lines.append(_line(time.time(), "lines_lost", {"n": self._n_lost}))
                self._n_lost = 0
            if lines:
                stream = self._stream or sys.stderr
                try:
                    stream.write("\n".join(lines) + "\n")
                    stream.flush()
                except (
                    OSError,
                    ValueError,
                ):  # nobody reads any more; answers matter more than lines
                    return

    def close(self) -> None:
        """What is written after this waits for a `flush`."""
        self._is_over.set()
        self.flush()

    def _run(self) -> None:
        while not self._is_over.wait(_SECONDS_BETWEEN_WRITES):
            self._write_out()


def _line(when: float, event: str, content: dict[str, Any]) -> str:
    shown = datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": shown, "event": event, **content}, ensure_ascii=False)


class ServiceLogHandler(logging.Handler):
    """What uvicorn has to say, in the same form; an exception without its message."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._log.trace("server", record.exc_info[1], level=record.levelname)
        else:
            # without its arguments
            self._log.write("server", level=record.levelname, message=record.msg)
