"""The words that rules look for, from `words.toml`, with the forms of verbs and nouns."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_FILE = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
_SPECIAL_THIRD = {"be": "is", "have": "has", "do": "does", "go": "goes"}
_DOUBLED = ("stop", "shop", "plan", "prefer")
_DOUBLED_ING = (*_DOUBLED, "begin", "cut", "forget", "get", "hit", "put", "run", "sit", "win")


class Verb(NamedTuple):
    """go, goes, went, gone, going"""

    base: str
    third: str
    past: str
    participle: str
    ing: str


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z")):
        return f"{word}es"
    return f"{_before_y(word)}ies" if _before_y(word) else f"{word}s"


def _before_y(word: str) -> str:
    """Returns what stands before a y that becomes an i: tr of try, nothing of play."""
    return word[:-1] if word.endswith("y") and word[-2] not in "aeiou" else ""


def _verb(base: str, past: str = "", participle: str = "") -> Verb:
    stem = base[:-1] if base.endswith("e") else base + base[-1] * (base in _DOUBLED)
    past = past or (f"{_before_y(base)}ied" if _before_y(base) else f"{stem}ed")
    stem = base[:-1] if base.endswith("e") and base not in ("be", "see") else base
    ing = f"{stem}{base[-1] * (base in _DOUBLED_ING)}ing"
    return Verb(base, _SPECIAL_THIRD.get(base, _with_s(base)), past, participle or past, ing)


def table(text: str) -> dict[str, str]:
    """Reads pairs of words: "gave: give, came: come"."""
    pairs = (pair.split(":") for pair in " ".join(text.split()).split(", "))
    return {old.strip(): new.strip() for old, new in pairs}


_IRREGULAR = (forms.split() for forms in _FILE["irregular_verbs"].split(";"))
VERBS = [*(_verb(*forms) for forms in _IRREGULAR), *map(_verb, _FILE["regular_verbs"].split())]
BY_FORM = {form: verb for verb in VERBS for form in verb}
"""Every form of every verb; no form belongs to two verbs."""

ADJECTIVES = frozenset(_FILE["adjectives"].split())
FUNCTION_WORDS = frozenset(_FILE["function_words"].split())
_PEOPLE = {_with_s(noun): noun for noun in _FILE["people"].split()}
_THINGS = {_with_s(noun): noun for noun in _FILE["things"].split()}

_OUR_ENDINGS = ("", "s", "ed", "ing", "ful", "able", "less", "ite")
_NO_WORDS = ("vaporite", "rumorful", "rumorless")
_BRITISH = (
    table(_FILE["british_spelling"])
    | {
        f"{stem}r{ending}": f"{stem}ur{ending}"
        for stem in _FILE["our_stems"].split()
        for ending in _OUR_ENDINGS
        if f"{stem}r{ending}" not in _NO_WORDS
    }
    | {
        f"{stem}iz{ending}": f"{stem}is{ending}"
        for stem in _FILE["ise_stems"].split()
        for ending in ("e", "es", "ed", "ing")
    }
)
TABLES = {
    "people": _PEOPLE,
    "things": _THINGS,
    "british": _BRITISH,
    "american": {british: american for american, british in _BRITISH.items()},
}
"""Words for words, by the names under which rules ask for them."""

LISTS: dict[str, Iterable[str]] = {
    "adjectives": ADJECTIVES,
    "function_words": FUNCTION_WORDS,
    "nouns": [*_PEOPLE.values(), *_THINGS.values()],
    "plurals": [*_PEOPLE, *_THINGS],
    "people": _PEOPLE.values(),
    "forms": BY_FORM,
    "bases": [verb.base for verb in VERBS],
    "thirds": [verb.third for verb in VERBS],
    "pasts": [verb.past for verb in VERBS if verb.past != verb.base],
    "regular_pasts": [verb.past for verb in VERBS if verb.past.endswith("ed")],
    "participles": [verb.participle for verb in VERBS],
    "distinct_participles": [
        verb.participle for verb in VERBS if verb.participle not in (verb.past, verb.base)
    ],
    "bases_unlike_past": [
        verb.base for verb in VERBS if verb.base not in (verb.past, verb.participle)
    ],
    "ings": [verb.ing for verb in VERBS],
    "ings_without_g": [verb.ing[:-1] for verb in VERBS],
}
"""Lists of words, by the names under which rules ask for them."""


def words_of(expression: str) -> list[str]:
    """Reads a list of words: "@nouns food -idea -@adjectives", from left to right."""
    found: dict[str, None] = {}
    for token in expression.split():
        name = token.removeprefix("-")
        named = set(LISTS[name[1:]] if name.startswith("@") else [name])
        if token.startswith("-"):
            found = {word: None for word in found if word not in named}
        else:
            found |= dict.fromkeys(named)
    return list(found)
