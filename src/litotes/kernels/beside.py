"""Two pieces of work side by side on a GPU, in a recorded pass as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

A = TypeVar("A")
B = TypeVar("B")


class SideBySide:
    """Has a stream of its own: passes that may run at the same time must not share one."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None

    def both(
        self, long: Callable[[], A], short: Callable[[], B], *, device: torch.device
    ) -> tuple[A, B]:
        """What both give; on a GPU the second is computed beside the first.

        Whatever they read must live until this returns: memory that is given back earlier may be
        written by the one while the other still reads it.
        """
        if device.type != "cuda":
            return long(), short()
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)
        here = torch.cuda.current_stream(device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            of_short = short()
        of_long = long()
        here.wait_stream(self._stream)
        return of_long, of_short
