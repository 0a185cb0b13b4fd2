"""A column that holds several labels of one text, with a sign between them.

several=|        angry|sad      both
sad            one
none           nobody gave it any of the labels
(empty)        nobody has said: the text has no label for this task
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from litotes.core.errors import UserError
from litotes.core.values import Label

NONE = "none"
"""The word for a text that has been looked at and has none of the labels."""
BETWEEN = "|"
"""Stands between labels wherever several are written into one cell."""


def split_labels(cell: str, sign: str, place: str) -> tuple[str, ...]:
    """The labels in a cell, each once, in alphabetical order."""
    words = {word.strip() for word in cell.split(sign)} - {""}
    if {word.casefold() for word in words} == {NONE}:
        return ()
    for word in words:
        if word.casefold() == NONE:
            raise UserError(f"{place} holds {NONE!r} beside other labels. Take one of them out.")
        if BETWEEN in word:
            raise UserError(
                f"{place} holds the label {word!r:.60}: answers are written with {BETWEEN} between"
                " labels, so that none can have it in its name. Write several=| in the source."
            )
    return tuple(sorted(words))


def count_each(labels: Iterable[Label]) -> Counter[str]:
    """How often each label occurs."""
    counts: Counter[str] = Counter()
    for own in labels:
        assert isinstance(own, tuple)
        counts.update(own)
    return counts
