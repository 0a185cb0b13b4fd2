"""The logs and the metrics of one service. Neither ever holds a text, a token or a path as it was
sent.
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
from functools import cache
from typing import IO, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from litotes.core.json_text import to_json
from litotes.service.problems import read_facts

_MAX_LINES = 10_000
_SECONDS_BETWEEN_WRITES = 0.1
_FLUSH_SECONDS = 0.2
_KINDS = {"counter": Counter, "gauge": Gauge, "histogram": Histogram, "info": Info}


class Log:
    """Collects lines and writes them a moment later, one JSON object each: a thread of its own
    does it, for a terminal or a pipe that is not read must not hold up the answers.

    When `stream` is not read any more, the oldest lines are dropped and counted; when it is full or
    closed, those that should be written. on_loss: called with their number.
    """

    def __init__(
        self, stream: IO[str] | None = None, *, on_loss: Callable[[int], object] = lambda n: None
    ) -> None:
        self._stream, self._on_loss = stream, on_loss
        self._lines: deque[dict[str, Any]] = deque(maxlen=_MAX_LINES)
        self._n_lost = 0
        self._is_closed, self._writing = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None
        self.is_stuck = False
        """The last flush timed out: the stream is not read, and a thread hangs in the middle of a
        line.
        """

    def write(self, event: str, **content: Any) -> None:
        if len(self._lines) == _MAX_LINES:
            self._lose(1)
        self._lines.append({"time": time.time(), "event": event, **content})
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="litotes-log", daemon=True)
            self._thread.start()

    def write_error(self, event: str, error: BaseException, **content: Any) -> None:
        """Writes where an error came from, without its message, which may quote a text."""
        frames = traceback.extract_tb(error.__traceback__)
        trace = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        self.write(event, error=type(error).__name__, trace=trace, **content)

    def take(self, record: logging.LogRecord) -> None:
        """Writes a warning of uvicorn's."""
        if record.exc_info and record.exc_info[1] is not None:
            self.write_error("server", record.exc_info[1], level=record.levelname)
        else:
            # not formatted: the arguments may hold what was sent
            self.write("server", level=record.levelname, message=record.msg)

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
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            n_lines, n_lost = len(lines), self._n_lost
            if n_lost:
                lines.append({"time": time.time(), "event": "lines_lost", "n": n_lost})
            if not lines:
                return
            for line in lines:
                utc = datetime.fromtimestamp(line["time"], UTC)
                line["time"] = utc.isoformat(timespec="milliseconds")
            stream = self._stream or sys.stderr
            try:
                if stream is None:  # as Python has it where stderr was closed before the start
                    raise ValueError("closed")
                stream.write("".join(to_json(line) + "\n" for line in lines))
                stream.flush()
            except (OSError, ValueError):  # full or closed: answers matter more than lines
                self._lose(n_lines)
            else:
                self._n_lost -= n_lost

    def _lose(self, n: int) -> None:
        self._n_lost += n
        self._on_loss(n)


class Metrics:
    """The metrics of one service, in a registry of their own; /metrics lists them in the order of
    `metrics.toml`, where each is described.

    Labels come from fixed tables, never from a request.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        common: Any = {"namespace": "litotes", "registry": self.registry}
        self._made = {}
        for name, about in read_facts("metrics.toml").items():
            kind, says = about.pop("kind"), about.pop("about")
            self._made[name] = _KINDS[kind](name, says, **about, **common)
        # cached: finding the child of a label takes longer than counting
        self._child = cache(lambda name, *labels: self._made[name].labels(*labels))

    def __getitem__(self, name: str) -> Any:
        return self._made[name]

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._child("requests", route, status).inc()
        self._child("request_seconds", route).observe(seconds)

    def count_problem(self, name: str) -> None:
        self._child("refused", name).inc()

    def add_model(self, name: str, runtime: str, tasks: str) -> None:
        self._child("model", name, runtime).info({"tasks": tasks})

    def render(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self.registry)
