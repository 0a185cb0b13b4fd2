"""Makes explanations, one at a time, in a thread of their own.

One takes as long as many predictions, which must not wait for it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from litotes.core.progress import Watch
from litotes.service.batcher import QueueFull
from litotes.service.worker import Worker

_SECONDS_EACH = 2
"""What an explanation takes, roughly: for `Retry-After`."""

Work = Callable[[Watch], bytes]


class _Abandoned(Exception):
    """No client waits any more for what is being computed."""


@dataclass(frozen=True, eq=False)
class ExplainTask:
    """One explanation to make. deadline: on the clock of `time.monotonic()`."""

    client: str
    work: Work
    deadline: float
    future: Future[bytes] = field(default_factory=Future)

    def run(self) -> None:
        try:
            self._check_wanted()
            self._finish(self.work(self._check_wanted))
        except _Abandoned:
            pass  # the client has been answered, or has gone
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # cancelled, or failed before
            self.future.set_exception(error)

    def _finish(self, content: bytes) -> None:
        with suppress(InvalidStateError):
            self.future.set_result(content)

    def _check_wanted(self, *_: object) -> None:
        """The `Watch` of the computation: ends it once no client waits for it."""
        if self.future.done() or time.monotonic() > self.deadline:
            raise _Abandoned


class Explainer(Worker[ExplainTask]):
    """Does tasks in the order they came; at most max_waiting wait, and half as many of one client.

    A task that is cancelled or past its deadline is not begun, and one under way ends at its next
    report of progress: a long text must not keep all others waiting.
    """

    def __init__(self, max_waiting: int) -> None:
        super().__init__("litotes-explanations")
        self._max_waiting = max_waiting
        self._tasks: deque[ExplainTask] = deque()
        self._current: ExplainTask | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed, even if no client waits for it any more."""
        return self._current is not None

    @property
    def n_waiting(self) -> int:
        return sum(not task.future.done() for task in tuple(self._tasks))

    def check_room(self, client: str) -> None:
        """May raise `QueueFull`."""
        waiting = [task.client for task in tuple(self._tasks) if not task.future.done()]
        has_room = len(waiting) < self._max_waiting
        has_share = waiting.count(client) < max(self._max_waiting // 2, 1)
        if self._is_closed or not has_room or not has_share:
            raise QueueFull(_SECONDS_EACH * max(len(waiting), 1))

    def submit(self, client: str, work: Work, deadline: float) -> Future[bytes]:
        """The explanation to come; may raise `QueueFull`."""
        task = ExplainTask(client, work, deadline)
        with self._lock:
            self.check_room(client)
            self._tasks.append(task)
            self._wake()
        return task.future

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Ends the task under way and all that wait with this error."""
        with self._lock:
            if self._current is not None:
                self._current.fail(error())
            for task in self._tasks:
                task.fail(error())

    def _next_task(self, lane: int) -> ExplainTask | None:
        self._current = self._tasks.popleft() if self._tasks else None
        return self._current

    def _run_task(self, task: ExplainTask) -> None:
        task.run()
