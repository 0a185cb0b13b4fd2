"""Prose of generated pages, cut into lines, and its place in them."""

from __future__ import annotations

import textwrap

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


def replace_between(page: str, begin: str, end: str, text: str) -> str:
    """The page with this text between two of its comments."""
    before, mark, rest = page.partition(begin)
    if not mark or end not in rest:
        raise ValueError(f"The page needs {begin} and {end} after it.")
    return f"{before}{begin}\n{text}\n{rest[rest.index(end) :]}"
