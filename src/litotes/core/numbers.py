"""Numbers with a sign, written the same way everywhere; counts, checked."""

from __future__ import annotations

import sys


def format_signed(value: float, digits: int, *, minus: str = "-", plus: str = "+") -> str:
    """A number with its sign and so many decimal places. plus: what stands before 0 and above.

    What rounds to zero is written as zero: on another processor the last bit of a sum may differ,
    and −0.000 would say that something had become worse.
    """
    written = f"{value:+z.{digits}f}"  # z: no negative zero
    return written.replace("-", minus).replace("+", plus)


def counted(n: int, thing: str) -> str:
    """1 row, 2,000 rows."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def require_count(value: object) -> int:
    """A number of things that was read from a file; what is none is a ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= sys.maxsize:
        raise ValueError(f"{value!r:.40} is not a count")
    return value
