"""A control for a rewrite: as many words changed, elsewhere, by misspelling.

    D = least number of words replaced, added or left out that turn the text into its rewrite

The control changes D words of the text that the rewrite left alone, each by misspelling it: letters
after the first are replaced by other letters at random. No variety spells so: what a model makes of
the control is what it makes of D changed words as such. Where the rewrite touches a function word
(an article, a pronoun, a form of be …), the control misspells a function word if there is one left;
for a content word, a content word. As many letters are replaced as the rewrite's word differs by,
but at least one and at most half of the word's letters.

Case, punctuation and emoji are not counted as words: what changes nothing else has no control. Nor
is there one where fewer than D words of at least two letters are left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from random import Random
from string import ascii_lowercase

from litotes.data.rewrites.vocabulary import FUNCTION_WORDS

_WORD = re.compile(r"(?:https?://|www\.)\S+|[@#]?\w+(?:['’]\w+)*")
_PLAIN = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True)
class _Edit:
    """A word that the rewrite changed: what class it is of, and by how many letters."""

    is_function_word: bool
    n_letters: int


def control_of(text: str, rewritten: str, *, seed: int = 0) -> str | None:
    """The control of a rewrite; None where the text has too few other words.

    The same for the same seed and texts.
    """
    words = _WORD.findall(text)
    edits, left_alone = _edits(words, _WORD.findall(rewritten))
    free = [place for place in left_alone if _PLAIN.fullmatch(words[place])]
    if not edits or len(edits) > len(free):
        return None
    random = Random(f"{seed}\n{text}\n{rewritten}")
    random.shuffle(free)
    for edit in edits:
        place = _take(free, edit, words)
        words[place] = _misspell(words[place], edit.n_letters, random)
    # a word of the text is left as it is, or is misspelt in its place
    new = iter(words)
    return _WORD.sub(lambda _: next(new), text)


def word_distance(text: str, other: str) -> int:
    """D: how many words are replaced, added or left out, as the alignment counts them."""
    edits, _ = _edits(_WORD.findall(text), _WORD.findall(other))
    return len(edits)


def _edits(words: list[str], others: list[str]) -> tuple[list[_Edit], list[int]]:
    """Finds what was changed, and the places of the words that were not."""
    edits: list[_Edit] = []
    left_alone: list[int] = []
    folded = [[word.casefold() for word in one] for one in (words, others)]
    matcher = SequenceMatcher(None, folded[0], folded[1], autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind == "equal":
            left_alone += range(start, end)
            continue
        changed = zip_longest(words[start:end], others[other_start:other_end], fillvalue="")
        edits += [_edit(before, after) for before, after in changed]
    return edits, left_alone


def _edit(before: str, after: str) -> _Edit:
    is_function_word = (before or after).lower().replace("’", "'") in FUNCTION_WORDS
    same = sum(block.size for block in SequenceMatcher(None, before, after).get_matching_blocks())
    return _Edit(is_function_word, max(len(before), len(after)) - same)


def _take(free: list[int], edit: _Edit, words: list[str]) -> int:
    """Takes the next free place whose word is of the edit's class; of any, where there is none."""
    for number, place in enumerate(free):
        if (words[place].lower() in FUNCTION_WORDS) is edit.is_function_word:
            return free.pop(number)
    return free.pop(0)


def _misspell(word: str, n_letters: int, random: Random) -> str:
    """The word with letters after the first replaced; it is no word of the other class then."""
    letters = list(word)
    n_replaced = min(max(n_letters, 1), max(len(word) // 2, 1))
    for place in random.sample(range(1, len(word)), n_replaced):
        old = letters[place].lower()
        new = random.choice([letter for letter in ascii_lowercase if letter != old])
        letters[place] = new.upper() if letters[place].isupper() else new
    return "".join(letters)
