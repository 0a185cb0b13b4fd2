"""Threads that compute step back behind the one that answers.

On a machine whose cores are all busy with texts, the event loop would wait for its turn like everybody else; then even refusals are
late, and requests pile up in the kernel, where nobody counts them. A thread that one of these starts, ONNX Runtime's or torch's, is as
modest as it is.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

_MODESTY = 2
"""Of `nice`: two thirds of the share of a thread that has not stepped back, where there is not enough for both. With much less, a flood
of requests to refuse would leave nothing for those that were let in."""


def start_computing(work: Callable[[], None], name: str) -> threading.Thread:
    """A thread that ends with the process."""

    def run() -> None:
        if sys.platform == "linux":  # elsewhere it is the process that has a priority, not the thread
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + _MODESTY)
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
