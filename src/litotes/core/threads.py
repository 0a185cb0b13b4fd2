"""How the threads of a computation wait for each other."""

from __future__ import annotations

import os

STREAM_THREADS = "litotes-stream"
"""How the names begin of threads that compute texts as they come."""


def sleep_while_waiting() -> None:
    """Lets OpenMP's threads sleep while they wait, unless the user has chosen otherwise.

    By default they spin. Where another process needs a core too, a spinning thread keeps the very
    thread it waits for from running: two training threads on two busy cores took 5 to 9 times as
    long as with this. What is computed does not change. Counts only before torch is imported;
    processes started later inherit it.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
