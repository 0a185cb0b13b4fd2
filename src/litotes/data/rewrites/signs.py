"""The features of a variety that a text shows already, where a rule can tell.

A rewrite puts a feature into a text; most features cannot be seen in a text afterwards without
knowing what it was before ("would" for "will"). A sign (`signs.toml`) is a pattern for one that
can: it matches what its rewrites write and not what they were given.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from litotes.data.rewrites import REWRITES


class Sign(NamedTuple):
    """rewrites: those that write what it matches."""

    rewrites: tuple[str, ...]
    matches: Callable[[str], bool]


def _sign(entry: dict[str, Any]) -> Sign:
    rewrites = tuple(entry["rewrites"])
    if "changed_by" in entry:
        to_other = REWRITES[entry["changed_by"]]
        return Sign(rewrites, lambda text: to_other(text) != text)
    if "lower" in entry:
        return Sign(
            rewrites, lambda text: text == text.lower() != text.upper() and len(text.split()) > 1
        )
    flags = 0 if entry.get("case") else re.IGNORECASE
    pattern = re.compile(entry["pattern"].replace("\n", ""), flags)
    return Sign(rewrites, lambda text: pattern.search(text) is not None)


_FILE = tomllib.loads((Path(__file__).parent / "signs.toml").read_text(encoding="utf-8"))
SIGNS: dict[str, Sign] = {name: _sign(entry) for name, entry in _FILE.items()}
"""By what it looks like."""


def signs_of(text: str) -> list[str]:
    """Returns the features that a text shows."""
    return [name for name, sign in SIGNS.items() if sign.matches(text)]
