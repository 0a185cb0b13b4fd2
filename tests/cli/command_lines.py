"""What a line of the command line prints, for tests of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Told(NamedTuple):
    out: str
    err: str


Run = Callable[..., Any]
"""run("audit --data", file): what `litotes audit --data FILE` prints; it ends with `code`."""
