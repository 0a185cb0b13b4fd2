"""Progress of the jobs of a study, as lines."""

from __future__ import annotations

import sys


class PrintedProgress:
    """Prints a line when another job is done, not for every look at the workers."""

    def __init__(self) -> None:
        self.last: tuple[str, int] | None = None

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        if self.last != (what, done):
            print(f"{what}: {done} of {total} {note}", file=sys.stderr, flush=True)
        self.last = what, done
