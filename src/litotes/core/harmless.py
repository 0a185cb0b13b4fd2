"""Texts on a page: whatever stands in them stays text, and what cannot be seen is shown by its
number.
"""

from __future__ import annotations

import unicodedata
from html import escape

_KEPT = "\n\r\t\u200c\u200d"
"""Ends of lines and blanks; and what cannot be seen, but joins letters and emoji."""


def harmless(text: str) -> str:
    """The text with characters that steer instead of being read as ‹U+202E›: controls, those that
    turn the direction, lone surrogates.
    """
    return "".join(
        (
            _named(char)
            if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in _KEPT
            else char
        )
        for char in text
    )


def markup(text: str) -> str:
    """The same as a part of a page."""
    return escape(harmless(text))


def _named(char: str) -> str:
    return f"‹U+{ord(char):04X}›"
