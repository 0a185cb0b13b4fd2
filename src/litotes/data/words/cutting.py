"""A text cut into words, each with its place: as a treebank does, as tweets are tokenized, or at
blanks.

A model of words must be asked with words like those it was trained on. The rules are those of the
English Web Treebank as far as a pattern can follow them: `don't` is do + n't, `15-year` three
words, `...` and `!!!` one each, addresses whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from litotes.core.registry import pick

# what comes before an @ or an ending is looked for in so many signs at most: without a limit every
# word of a long text would be searched to its end
_ADDRESS = r"https?://\S+|www\.\S+|\S{1,64}@\w[\w.-]{0,252}\.\w+|[@#]\w+"
_FACE = r"[:;=]['’]?-?[()DPp|/](?!\w)"
_FILE = r"[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}\.(?:com|org|net|edu|gov|pdf|html?|docx?|xlsx?)\b"
_NUMBER = r"\d+(?:[.,:/]\d+)+"
_SHORT_FORM = r"(?:[A-Za-z]\.){2,}|(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|etc)\.(?=\s|$)"
_WORD = r"[^\W_]+(?:['’][^\W_]+)*['’]?(?<!['’])|[^\W_]+"
_SIGNS = r"([^\w\s])\1+|\S"
_TOKEN = re.compile(
    "|".join((_ADDRESS, _FACE, _FILE, _SHORT_FORM, _NUMBER, _WORD, _SIGNS)), re.IGNORECASE
)
_CONTRACTION = re.compile(r"(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)
_JOINED = {"cannot": 3, "gonna": 3, "wanna": 3, "gotta": 3}
"""Words that a treebank writes as two, and where the second begins."""


@dataclass(frozen=True)
class CutWord:
    """A word and where it stands in its text."""

    written: str
    start: int
    end: int


def cut_text(text: str, way: str) -> tuple[CutWord, ...]:
    """The words of a text, none of them empty. way: a name of `CUTTINGS`."""
    return pick(CUTTINGS, way, "way to cut texts into words called")(text)


def at_blanks(text: str) -> tuple[CutWord, ...]:
    return tuple(CutWord(found[0], *found.span()) for found in re.finditer(r"\S+", text))


def at_signs(text: str) -> tuple[CutWord, ...]:
    """Signs are words of their own, contractions stay whole: what ? i'm."""
    return tuple(CutWord(found[0], *found.span()) for found in _TOKEN.finditer(text))


def as_treebank(text: str) -> tuple[CutWord, ...]:
    """The same with contractions cut: ca n't, it 's."""
    words: list[CutWord] = []
    for word in at_signs(text):
        words += _cut_contraction(word)
    return tuple(words)


def _cut_contraction(word: CutWord) -> list[CutWord]:
    found = _CONTRACTION.fullmatch(word.written)
    place = len(found[1]) if found else _JOINED.get(word.written.lower())
    if place is None:
        return [word]
    middle = word.start + place
    return [
        CutWord(word.written[:place], word.start, middle),
        CutWord(word.written[place:], middle, word.end),
    ]


CUTTINGS = {"treebank": as_treebank, "signs": at_signs, "blanks": at_blanks}
