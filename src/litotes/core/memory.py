"""Free memory is returned to the system."""

from __future__ import annotations

import ctypes
import sys


def trim_malloc() -> None:
    """Makes glibc return the memory that was freed.

    Maps of all sizes come and go, and glibc keeps the holes they leave: after thousands of texts
    these are half of what a process holds. Takes a few milliseconds; without glibc there is nothing
    to do.
    """
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
