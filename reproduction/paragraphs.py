"""Prose of generated pages, cut into lines."""

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
