"""Threads that compute step back behind the one that answers.

On a machine whose cores are all busy with texts, the event loop would wait for its turn like
everybody else; then even refusals are late, and requests pile up in the kernel, where nobody counts
them. A thread that one of these starts, ONNX Runtime's or torch's, is as modest as it is.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

_NICENESS = 2
"""Of `nice`: two thirds of the share of a thread that has not stepped back, where there is not
enough for both. With much less, a flood of requests to refuse would leave nothing for those that
were let in.
"""


Task = TypeVar("Task")


def start_worker_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """A thread that ends with the process."""

    def run() -> None:
        # elsewhere it is the process that has a priority, not the thread
        if sys.platform == "linux":
            os.setpriority(
                os.PRIO_PROCESS,
                threading.get_native_id(),
                os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS,
            )
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Worker(ABC, Generic[Task]):
    """A thread that does what others hand in, one after the other: started with the first, ended
    with the process or when closed.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @abstractmethod
    def _next_task(self) -> Task | None:
        """What is to be done now, None where nothing is; whoever calls holds `_changed`."""

    @abstractmethod
    def _run_task(self, task: Task) -> None:
        """Does it; must not raise."""

    def close(self) -> None:
        """What has been handed in is still done."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _wake(self) -> None:
        """There is something to do; whoever calls holds `_changed`."""
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
