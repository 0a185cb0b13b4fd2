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
from functools import partial
from typing import Generic, TypeVar

NICENESS = 2
"""What is added to the nice value: where cores are scarce, a worker gets two thirds of the share of
the event loop. With much less, refusing a flood of requests would starve those that were accepted.
"""
LONG_NICENESS = NICENESS + 6
"""Of what takes long: a quarter of the share of what is short, where both want the same core."""

Task = TypeVar("Task")


def lower_priority(niceness: int = NICENESS) -> None:
    """Of the calling thread; elsewhere than on Linux a priority belongs to the whole process."""
    if sys.platform == "linux":
        priority = os.getpriority(os.PRIO_PROCESS, 0) + niceness
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), priority)


def start_worker_thread(
    work: Callable[[], None], name: str, niceness: int = NICENESS
) -> threading.Thread:
    """Runs `work` in a thread of lower priority that ends with the process."""

    def run() -> None:
        lower_priority(niceness)
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Worker(ABC, Generic[Task]):
    """Threads that do one task after the other.

    They start with the first task and end with the process, or when the worker is closed.

    threads: the lane and the niceness of each. Tasks of different lanes do not wait for each other.
    """

    def __init__(self, name: str, threads: tuple[tuple[int, int], ...] = ((0, NICENESS),)) -> None:
        self._name, self._threads = name, threads
        self._lock = threading.RLock()
        self._changed = {lane: threading.Condition(self._lock) for lane, _ in threads}
        self._is_running = self._is_closed = False

    @abstractmethod
    def _next_task(self, lane: int) -> Task | None:
        """The next task, None if there is none; the caller holds `_lock`."""

    @abstractmethod
    def _run_task(self, task: Task) -> None:
        """Does the task; must not raise."""

    def close(self) -> None:
        """Ends the threads after the tasks that wait."""
        with self._lock:
            self._is_closed = True
            for changed in self._changed.values():
                changed.notify_all()

    def _wake(self, lane: int = 0) -> None:
        """Called when there may be a task to do; the caller holds `_lock`."""
        if not self._is_running:
            self._is_running = True
            for own_lane, niceness in self._threads:
                start_worker_thread(partial(self._run, own_lane), self._name, niceness)
        self._changed[lane].notify()

    def _run(self, lane: int) -> None:
        while True:
            with self._lock:
                while (task := self._next_task(lane)) is None:
                    if self._is_closed:
                        return
                    self._changed[lane].wait()
                self._wake(lane)  # there may be another one
            self._run_task(task)
