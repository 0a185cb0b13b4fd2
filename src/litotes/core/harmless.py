"""Texts from anywhere, shown on a page or in a terminal: what they hold stays text.

Some characters steer instead of being read: they move the cursor, turn the direction of writing or
begin markup.
"""

from __future__ import annotations

import unicodedata
from html import escape

_JOINERS = "\u200c\u200d"
"""Invisible, but they join letters and emoji."""
_LAYOUT = "\n\r\t"
_STEERING = ("Cc", "Cf", "Cs")
"""Unicode's categories of controls, of formats (those that turn the direction among them) and of
lone surrogates.
"""


def harmless(text: str, *, in_terminal: bool = False) -> str:
    """The text with its steering characters made visible: as ‹U+202E› on a page.

    In a terminal everything stands on one line: white space becomes a blank, any other character
    that cannot be printed a dot.
    """
    return "".join(map(_terminal_character if in_terminal else _page_character, text))


def markup(text: str) -> str:
    """The harmless text as part of an HTML page."""
    return escape(harmless(text))


def _page_character(char: str) -> str:
    if unicodedata.category(char) not in _STEERING or char in _JOINERS or char in _LAYOUT:
        return char
    return f"‹U+{ord(char):04X}›"


def _terminal_character(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    return " " if char.isspace() else "·"
