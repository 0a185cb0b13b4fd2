"""Words as tokenizers cut them, brought into the form in which treebanks write them: what a tagger
was trained on.

A BERT tokenizer makes three words of "don't" (don ' t), RoBERTa's two (don 't), others one; a
treebank writes two others (do n't). Every word that came in keeps its place, so that what is found
out about a treebank's word can be said of the tokenizer's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_NEGATED = frozenset((
    "ain", "aren", "can", "couldn", "daren", "didn", "doesn", "don", "hadn", "hasn", "haven",
    "isn", "mightn", "mustn", "needn", "oughtn", "shan", "shouldn", "wasn", "weren", "won",
    "wouldn",
))  # fmt: skip
"""What may stand before 't."""

_ENDINGS = frozenset(["'s", "'re", "'ve", "'ll", "'d", "'m"])

_WITHOUT_APOSTROPHE = {
    **{f"{stem}t": (stem[:-1], "n't") for stem in _NEGATED - {"can", "won"}},
    "cant": ("ca", "n't"),
    "wont": ("wo", "n't"),
    "im": ("I", "'m"),
    "ive": ("I", "'ve"),
    "youre": ("you", "'re"),
    "theyre": ("they", "'re"),
    "thats": ("that", "'s"),
    "whats": ("what", "'s"),
    "gonna": ("gon", "na"),
    "wanna": ("wan", "na"),
    "gotta": ("got", "ta"),
}
"""Contractions as they are often typed; treebanks split these as well."""

_MEANT_IN_CAPITALS = frozenset(["AM", "IT", "US"])
_NO_PUNCTUATION = frozenset("#@%&*\\")
_CONTRACTION = re.compile(r"(.+?)(n't|'(?:s|re|ve|ll|d|m))", re.IGNORECASE)
_SIGNS_AROUND = re.compile(r"([^\w#@]*)(.*?)(\W*)", re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?…]+")
_ADDRESS = re.compile(r"https?\b.*|www\b.*|[@#]\w.*|\S+@\S+\.\w+", re.IGNORECASE)
_CUT_ADDRESS = re.compile(r"https?|www", re.IGNORECASE)
_JOINS_ADDRESS = re.compile(r"[./:?=&_%#-]+")

# the same words occur again and again
_cached = lru_cache(maxsize=65_536)


@dataclass(frozen=True)
class TreebankWord:
    """place: the word of the tokenizer that it stands for; None where it stands for none."""

    written: str
    place: int | None


@_cached
def is_punctuation(word: str) -> bool:
    """Nothing but marks that divide or quote: Unicode's punctuation and the backtick, but not # @ %
    & * and the backslash.
    """
    return bool(word) and all(
        sign == "`" or (unicodedata.category(sign)[0] == "P" and sign not in _NO_PUNCTUATION)
        for sign in word
    )


@_cached
def has_letters(word: str) -> bool:
    return any(sign.isalpha() for sign in word)


def in_addresses(words: Sequence[str]) -> frozenset[int]:
    """The places of words that belong to a URL, an e-mail address, a hashtag or a mention, whole or
    cut at its punctuation.
    """
    found: set[int] = set()
    for place, word in enumerate(words):
        if place in found:
            continue
        if word in ("#", "@") and place + 1 < len(words) and has_letters(words[place + 1]):
            found |= {place, place + 1}
        elif _CUT_ADDRESS.fullmatch(word):
            found |= set(range(place, _end_of_address(words, place)))
        elif _is_address(word):
            found.add(place)
    return frozenset(found)


def sentences(words: Sequence[str]) -> list[list[TreebankWord]]:
    """The words as a treebank writes them, sentence by sentence."""
    found: list[list[TreebankWord]] = [[]]
    for typed, places in _join_contractions([word.replace("’", "'") for word in words]):
        place_of = {"stem": places[0], "ending": places[-1] if len(places) > 1 else None}
        for role, written in _split(typed):
            found[-1].append(TreebankWord(written, place_of.get(role)))
        if _ends_sentence(found[-1][-1].written):
            found.append([])
    return [sentence for sentence in found if sentence]


@_cached
def _is_address(word: str) -> bool:
    return _ADDRESS.fullmatch(word) is not None


@_cached
def _ends_sentence(written: str) -> bool:
    return _SENTENCE_END.fullmatch(written) is not None


def _end_of_address(words: Sequence[str], place: int) -> int:
    """Cut at punctuation, an address goes on as long as signs and words take turns: a blank would
    stand between two words.
    """
    end = place + 1
    while True:
        after = end
        while after < len(words) and _JOINS_ADDRESS.fullmatch(words[after]):
            after += 1
        # that is the next sentence
        if after in (end, len(words)) or (words[end] == "." and words[after][:1].isupper()):
            return end
        end = after + 1


def _join_contractions(words: list[str]) -> Iterator[tuple[str, range]]:
    """The words with contractions put together again, as they were typed, and the places they came
    from.
    """
    place = 0
    while place < len(words):
        end = place + 1 + _n_in_ending(words[place : place + 3])
        ending = "".join(words[place + 1 : end]).lower()
        yield _lower_shouting(words, place) + ending, range(place, end)
        place = end


def _n_in_ending(words: list[str]) -> int:
    """How many of the words after the first are the ending of a contraction: 't or ' t after don,
    's or ' s after it; 0, 1 or 2.
    """
    if len(words) == 1 or not words[1].startswith("'") or not words[0].isalpha():
        return 0
    parts = words[1:] if words[1] == "'" else words[1:2]
    ending = "".join(parts).lower()
    contracts = ending in _ENDINGS or (ending == "'t" and words[0].lower() in _NEGATED)
    return len(parts) if contracts else 0


def _lower_shouting(words: list[str], place: int) -> str:
    """A word in capitals in small letters; words that mean something else in capitals (US, IT) only
    where a neighbour is in capitals too.
    """
    word = words[place]
    if len(word) < 2 or not (word.isupper() and word.isalpha()):
        return word
    neighbours = words[max(place - 1, 0) : place] + words[place + 1 : place + 2]
    shouts = any(len(other) > 2 and other.isupper() for other in neighbours)
    return word if word in _MEANT_IN_CAPITALS and not shouts else word.lower()


@_cached
def _split(typed: str) -> tuple[tuple[str, str], ...]:
    """(role, written): do n't, it 's; and signs on either side, from a tokenizer that cuts at
    blanks alone.
    """
    match = _SIGNS_AROUND.fullmatch(typed)
    assert match is not None  # every string has this form
    before, core, after = match.groups()
    if not core:
        return (("stem", typed),)
    contraction = _CONTRACTION.fullmatch(core)
    whole = contraction.groups() if contraction else (core, "")
    stem, ending = _WITHOUT_APOSTROPHE.get(core.lower(), whole)
    parts = (("sign", before), ("stem", stem), ("ending", ending), ("sign", after))
    return tuple((role, written) for role, written in parts if written)
