"""Threads that compute, at a lower priority than the event loop.

When all cores are busy with texts, an event loop of the same priority would wait for its turn; then
even refusals are late, and requests pile up uncounted in the kernel. Threads that a worker starts,
ONNX Runtime's or torch's, inherit its priority.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

_NICENESS = 2
"""What is added to the nice value: where cores are scarce, a worker gets two thirds of the share of
the event loop. With much less, refusing a flood of requests would starve those that were accepted.
"""

Task = TypeVar("Task")


def start_worker_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Runs `work` in a thread of lower priority that ends with the process."""

    def run() -> None:
        # on other systems a priority belongs to the process, not to the thread
        if sys.platform == "linux":
            priority = os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), priority)
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Worker(ABC, Generic[Task]):
    """A thread that does one task after the other.

    It starts with the first task and ends with the process, or when it is closed.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @abstractmethod
    def _next_task(self) -> Task | None:
        """The next task, None if there is none; the caller holds `_changed`."""

    @abstractmethod
    def _run_task(self, task: Task) -> None:
        """Does the task; must not raise."""

    def close(self) -> None:
        """Ends the thread after the tasks that wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _wake(self) -> None:
        """Called when there is a task to do; the caller holds `_changed`."""
        if self._thread is None:
            self._thread = start_worker_thread(self._run, self._name)
        self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while (task := self._next_task()) is None:
                    if self._is_closed:
                        return
                    self._changed.wait()
            self._run_task(task)
