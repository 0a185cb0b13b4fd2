"""Explanations, one after the other in a thread of their own: each takes as long as many answers,
and answers must not wait for it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from litotes.core.progress import Watch
from litotes.service.batcher import QueueFull
from litotes.service.worker import Worker

_SECONDS_EACH = 2
"""For `Retry-After`: what an explanation takes, roughly."""

Work = Callable[[Watch], bytes]
ExplainTask = tuple[Work, float, "Future[bytes]"]


class _Abandoned(Exception):
    """Nobody waits any more for what is being computed."""


class Explainer(Worker[ExplainTask]):
    """Does errands in the order they came. At most n_waiting wait.

    One whose time is over, or which was cancelled, is not begun, or ended where it next tells how
    far it is: a long text must not keep everybody from theirs.
    """

    def __init__(self, n_waiting: int) -> None:
        super().__init__("litotes-explanations")
        self._most_waiting = n_waiting
        self._tasks: deque[ExplainTask] = deque()
        self._current: Future[bytes] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is computed this moment, though perhaps nobody waits for it any more."""
        return self._current is not None

    @property
    def n_waiting(self) -> int:
        return sum(not future.done() for _, _, future in tuple(self._tasks))

    @property
    def is_full(self) -> bool:
        return self.n_waiting >= self._most_waiting

    @property
    def retry_after(self) -> int:
        return _SECONDS_EACH * max(self.n_waiting, 1)

    def submit(self, work: Work, deadline: float) -> Future[bytes]:
        future: Future[bytes] = Future()
        with self._changed:
            if self._is_closed or self.is_full:
                raise QueueFull(self.retry_after)
            self._tasks.append((work, deadline, future))
            self._wake()
        return future

    def fail_all(self, error: Callable[[], Exception]) -> None:
        with self._changed:
            waiting = [future for _, _, future in self._tasks]
            for future in waiting if self._current is None else [self._current, *waiting]:
                _give(future, error())

    def _next_task(self) -> ExplainTask | None:
        errand = self._tasks.popleft() if self._tasks else None
        self._current = None if errand is None else errand[2]
        return errand

    def _run_task(self, errand: ExplainTask) -> None:
        work, deadline, future = errand
        watch = _ending(future, deadline)
        try:
            watch("explaining", 0, 1, "")
            _give(future, work(watch))
        except _Abandoned:
            pass  # whoever asked knows what time it is
        except Exception as error:
            _give(future, error)


def _ending(future: Future[bytes], deadline: float) -> Watch:
    def watch(what: str, done: int, total: int, note: str) -> None:
        if future.done() or time.monotonic() > deadline:
            raise _Abandoned

    return watch


def _give(future: Future[bytes], outcome: bytes | Exception) -> None:
    with suppress(InvalidStateError):  # nobody waits for it any more
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
