"""Texts from anywhere, shown on a page or in a terminal: what they hold stays text.

Some characters steer instead of being read: they move the cursor, turn the direction of writing or
begin markup. Some cells steer as well: a spreadsheet computes those that begin like a formula. What
a value prints as is one line, however much it holds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_JOINERS = "\u200c\u200d"
"""Invisible, but they join letters and emoji."""
_LAYOUT = "\n\r\t"
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of controls, of formats (those that turn the direction among them), of lone
surrogates and of the two characters that end a line or a paragraph.
"""
_FORMULA = re.compile(r"[=+\-@\t\r]")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~#!:])")


def harmless(text: str, *, in_terminal: bool = False) -> str:
    """The text with its steering characters made visible: as ‹U+202E› on a page.

    In a terminal everything stands on one line: white space becomes a blank, any other character
    that cannot be printed a dot.
    """
    if text.isprintable():  # almost all are, and this is quick
        return text
    return "".join(map(_terminal_character if in_terminal else _page_character, text))


def markdown(text: str) -> str:
    """The harmless text as part of a line of Markdown: no link, no heading, no end of a cell."""
    return _MARKDOWN.sub(r"\\\1", escape(harmless(text, in_terminal=True), quote=False))


def guard_formula(cell: str) -> str:
    """The cell of a CSV file, which a spreadsheet is to show and not to compute.

    An apostrophe is put before what would begin a formula; the page's CSV has the same rule.
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def is_utf8(text: str) -> bool:
    """Tells whether the text can be written as UTF-8.

    Python spells the bytes of a file's name that are not UTF-8 as lone surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_steering(char: str) -> bool:
    return unicodedata.category(char) in _STEERING and char not in _JOINERS


def _page_character(char: str) -> str:
    return f"‹U+{ord(char):04X}›" if is_steering(char) and char not in _LAYOUT else char


def _terminal_character(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    return " " if char.isspace() else "·"


_MAX_LINE, _MAX_TEXT = 200, 60


def one_line(value: object, **shown: Any) -> str:
    """`Name(shown=…, …)`, at most 200 characters: long texts are shortened, numbers rounded.

    For display only: what is shortened or rounded here is whole in the value.
    """
    parts = [f"{name}={_short(one)}" for name, one in shown.items()]
    return _shorten(f"{type(value).__name__}({', '.join(parts)})", _MAX_LINE, end="…)")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:z.3f}".rstrip("0").rstrip(".")
    if isinstance(value, str):
        return repr(_shorten(value, _MAX_TEXT, end="…"))
    if isinstance(value, Mapping):
        return f"{{{_join(f'{key!r}: {_short(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{_join(map(_short, value))}]"
    if isinstance(value, tuple):
        return f"({_join(map(_short, value))})"
    return _shorten(repr(value), _MAX_TEXT, end="…")


def _join(parts: Iterable[str]) -> str:
    return _shorten(", ".join(parts), 2 * _MAX_TEXT, end="…")


def _shorten(text: str, most: int, *, end: str) -> str:
    return text if len(text) <= most else text[: most - len(end)] + end
