"""Two pieces of work side by side on a GPU, in a recorded pass as well."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch

A = TypeVar("A")
B = TypeVar("B")


def both(long: Callable[[], A], short: Callable[[], B], *, device: torch.device) -> tuple[A, B]:
    """What both give; on a GPU the second is computed beside the first.

    Whatever they read must live until this returns: memory that is given back earlier may be
    written by the one while the other still reads it.
    """
    if device.type != "cuda":
        return long(), short()
    here, beside = torch.cuda.current_stream(device), _second_stream(device)
    beside.wait_stream(here)
    with torch.cuda.stream(beside):
        of_short = short()
    of_long = long()
    here.wait_stream(beside)
    return of_long, of_short


@cache
def _second_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
