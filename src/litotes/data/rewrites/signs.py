"""Which features of a variety a text shows already, where a rule can tell.

A rewrite puts a feature into a text; most features cannot be seen in a text afterwards without
knowing what it was before ("would" for "will"). A sign is a pattern for one that can: it matches
what its rewrites write and not what they were given (`tests/data/test_signs.py` holds it to that).
Two spellings are told by their opposite: a text that the rewrite to American spelling changes has
British spelling, and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from litotes.data.rewrites.spelling import SPELLING

_EMOJI = "[\U0001f300-\U0001faff\u2600-\u27bf\U0001f1e6-\U0001f1ff]"
_IRREGULAR = "better|best|worse|worst|easier|cheaper|nicer|bigger|faster|slower|friendlier|fresher"
_SHORT = "u|r|ur|pls|plz|cos|coz|cuz|thx|tho|ppl|tbh|tonite|n|prolly|gr8|b4"
_VERBS = "do|does|did|is|are|was|were|have|has|had|could|would|should|ca|wo"
_HEARD = "wanna|gonna|dunno|gotta|coulda|shoulda|woulda|kinda|sorta|lemme|gimme"


@dataclass(frozen=True)
class Sign:
    """rewrites: those that write what it matches."""

    rewrites: tuple[str, ...]
    matches: Callable[[str], bool]


def _pattern(pattern: str, *rewrites: str, case: bool = False) -> Sign:
    compiled = re.compile(pattern, 0 if case else re.IGNORECASE)
    return Sign(rewrites, lambda text: compiled.search(text) is not None)


def _changed_by(rewrite: str, *rewrites: str) -> Sign:
    """A text with this spelling is one that the rewrite to the other spelling changes."""
    to_other = SPELLING[rewrite]
    return Sign(rewrites, lambda text: to_other(text) != text)


def _is_lower(text: str) -> bool:
    return text == text.lower() != text.upper() and len(text.split()) > 1


SIGNS: dict[str, Sign] = {
    "ain't": _pattern(r"\bain['’]?t\b", "aint-be", "aint-have"),
    "youse": _pattern(r"\byouse\b", "youse"),
    "ye": _pattern(r"\bye\b", "ye"),
    "innit": _pattern(r"\binnit\b", "innit"),
    "lah": _pattern(r"\blah\b", "lah"),
    "hisself": _pattern(r"\b(?:hisself|theirselves)\b", "hisself"),
    "meself": _pattern(r"\bmeself\b", "meself"),
    "ourself": _pattern(r"\b(?:ourself|themself)\b", "ourself"),
    "we was": _pattern(r"\b(?:we|they|you) was(?:n['’]?t)?\b", "was-all"),
    "not … nothing": _pattern(
        r"n['’]?t (?:\w+ ){0,3}(?:nothing|nobody|nowhere|none|no)\b", "negative-concord"
    ),
    "more better": _pattern(rf"\b(?:more|most) (?:{_IRREGULAR})\b", "double-comparative"),
    "I gonna": _pattern(r"\b(?:i|you|we|they|he|she|it) gonna\b", "be-drop-gonna"),
    "British spelling": _changed_by("american-spelling", "british-spelling"),
    "American spelling": _changed_by("british-spelling", "american-spelling"),
    "goin'": _pattern(r"\b\w+in['’](?!\w)", "g-dropping"),
    "u, pls": _pattern(rf"(?<![\w./&'’-])(?:{_SHORT})(?![\w/&'’-]|\.\w)", "text-speak"),
    "wanna": _pattern(rf"\b(?:{_HEARD})\b", "eye-dialect"),
    "sooo": _pattern(r"([a-z])\1\1", "elongation"),
    "emoji": _pattern(_EMOJI, "emoji"),
    "#tag": _pattern(r"#\w", "hashtags"),
    "!!!": _pattern(r"!{2,}", "exclamations"),
    "CAPITALS": _pattern(r"\b[A-Z]{4,}\b", "upper-case", case=True),
    "small letters": Sign(("lower-case",), _is_lower),
    "dont": _pattern(
        rf"\b(?:(?:{_VERBS})nt|im|ive|ill|thats|whats|theyre|youre|weve|theyve|hes|shes)\b",
        "no-apostrophes",
    ),
}
"""By what it looks like."""


def signs_of(text: str) -> list[str]:
    """The features that a text shows."""
    return [name for name, sign in SIGNS.items() if sign.matches(text)]
