"""Prose and tables of generated pages, as lines, and their place in them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from litotes.core.numbers import format_signed

_WIDTH = 100


def paragraph(text: str, *, bullet: bool = False) -> str:
    start, indent = ("- ", "  ") if bullet else ("", "")
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def table_lines(head: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table. head: its first line, `| one | two |`."""
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def signed_interval(estimate: Mapping[str, Any], scale: int = 1) -> str:
    """A difference and where it may lie; scale: 100 for points."""
    digits = 3 if scale == 1 else 1
    low, high = (format_signed(scale * end, digits) for end in estimate["interval"])
    return f"{format_signed(scale * estimate['value'], digits)} ({low} to {high})"


def replace_between(page: str, begin: str, end: str, text: str) -> str:
    """The page with this text between two of its comments."""
    before, mark, rest = page.partition(begin)
    if not mark or end not in rest:
        raise ValueError(f"The page needs {begin} and {end} after it.")
    return f"{before}{begin}\n{text}\n{rest[rest.index(end) :]}"
