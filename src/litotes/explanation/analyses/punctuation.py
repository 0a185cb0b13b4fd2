"""Which words are only marks between words."""

from __future__ import annotations

from unicodedata import category

_TELLING = "!?…"
"""Marks that may well push an answer."""


def is_plain_mark(word: str) -> bool:
    """Whether it is a full stop, a comma or the like: nearly every text has them, and what happens
    to them is no finding.
    """
    return len(word) == 1 and category(word).startswith("P") and word not in _TELLING
