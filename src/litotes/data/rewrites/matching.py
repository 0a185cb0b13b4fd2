"""How rules find words and put others in their place: case, apostrophes and word boundaries are
seen to here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from random import Random

from litotes.data.rewrites.rewrite import Change

START = r"(?<![\w'’-])"
END = r"(?![\w'’-])"
SENTENCE = r"(?:(?<=[.!?]\s)|(?<=\n)|^)"
"""The beginning of a sentence."""

_N_SEEN = 60
"""How many characters before a place a rule looks at."""

New = str | Callable[[re.Match[str]], str]


def one_of(words: str | Iterable[str]) -> str:
    """A pattern for any of the words, the longest first; a string is a list of words."""
    each = words.split() if isinstance(words, str) else words
    return f"(?:{'|'.join(sorted(each, key=lambda word: (-len(word), word)))})"


def compiled(pattern: str, *, after: str = "", unless: str = "") -> re.Pattern[str]:
    """Whole words; a straight apostrophe finds a curly one too.

    after: what must follow. unless: what must not.
    """
    ending = f"(?={_both(after)})" if after else END
    refused = f"(?!{_both(unless)})" if unless else ""
    return re.compile(f"{START}(?:{_both(pattern)}){ending}{refused}", re.IGNORECASE)


def _both(pattern: str) -> str:
    """The pattern with both apostrophes where it has the straight one."""

    def both(found: re.Match[str]) -> str:
        return "['’]" if found[0] == "'" else found[0].replace("'", "'’")

    return re.sub(r"\[[^\]]*\]|'", both, pattern)


def substitute(
    pattern: str,
    new: New,
    *,
    after: str = "",
    unless: str = "",
    unless_before: str = "",
    n: int = 0,
    case: bool = True,
) -> Change:
    r"""Replaces what the pattern finds. new: with \1 … for groups, or a function of what was found.

    unless_before: what must not stand straight before it. n: at most so many places; 0: all.
    case: whether the new words begin as the old did.
    """
    search = compiled(pattern, after=after, unless=unless)
    refused = re.compile(f"(?:{_both(unless_before or '(?!)')})$", re.IGNORECASE)

    def replace(found: re.Match[str]) -> str:
        start = found.start()
        if refused.search(found.string, max(0, start - _N_SEEN), start):
            return found[0]
        written = found.expand(new) if isinstance(new, str) else new(found)
        return keep_case(found[0], written) if case else written

    def change(text: str, random: Random) -> str:
        return search.sub(replace, text, count=n)

    return change


def swap(table: Mapping[str, str], *, after: str = "", unless: str = "") -> Change:
    """Replaces words by others."""

    def new(found: re.Match[str]) -> str:
        return table[found[0].lower().replace("’", "'")]

    return substitute(one_of(table), new, after=after, unless=unless)


def chain(*changes: Change) -> Change:
    """One change after another."""

    def change(text: str, random: Random) -> str:
        for one in changes:
            text = one(text, random)
        return text

    return change


def is_name(found: re.Match[str]) -> bool:
    """Whether a capital inside a sentence says that the word may belong to a name."""
    before = found.string[: found.start()].rstrip(' "“(')
    is_capital = found[0][0].isupper() and not found[0].isupper()
    return is_capital and bool(before) and before[-1] not in ".!?:\n"


def keep_case(old: str, new: str) -> str:
    """The new words in the case and with the apostrophes of the old."""
    if "’" in old:
        new = new.replace("'", "’")
    letters = [char for char in old if char.isalpha()]
    if len(letters) > 2 and all(char.isupper() for char in letters):
        return new.upper()
    if letters and letters[0].isupper() and old[:2] not in ("I ", "I'", "I’"):
        return new[:1].upper() + new[1:]
    return new
