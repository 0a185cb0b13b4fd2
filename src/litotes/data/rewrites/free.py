"""Rewrites that patterns cannot say: writers of new words for a match, changes of a whole text."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from litotes.data.rewrites.vocabulary import BY_FORM, FUNCTION_WORDS

_PLAIN_END = re.compile(r"([\w)’'\"])(\s*)(\.?)(\s*)$")
_QUESTION = re.compile(
    r"(?:^|[.!?]\s+)(?:who|what|where|why|how|when|which|do|does|did|is|are|can|please|thanks?|so"
    r"|was|were|will|would|should|have)\b[^.!?]*$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|should|\w+ed"
    r"|[a-z]+n['’]t|love|like|hate|want|need|go|went|got|get|came|made|think|know"
    r"|\w+['’](?:s|re|m|ve))\b",
    re.IGNORECASE,
)
_N_WORDS = 3
"""A shorter sentence is an exclamation."""
_CONTENT_WORD = re.compile(r"(?<![\w'’#@-])[A-Za-z]{5,}(?![\w'’-])")
_NEUTRAL_EMOJI = ("🍴", "📍", "📱", "📷", "🗓", "🚪", "🏠", "🪑")
"""Things, which say nothing about what the writer thinks of them."""
_NEIGHBOURS = {
    key: row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for place, key in enumerate(row)
}
_SHARE = 0.1


def _after(found: re.Match[str]) -> str:
    """I (have) just eaten → I am after eating; had just → was after."""
    subject, have = found[1].lower(), (found[2] or "").lower()
    done, *rest = (found[3] or found[4]).lower().split()
    is_one = subject in ("he", "she", "it")
    if have == " had":
        be = "was" if is_one or subject == "i" else "were"
    else:
        be = "is" if is_one else "am" if subject == "i" else "are"
    return " ".join([found[1], be, "after", BY_FORM[done].ing, *rest])


def _now(found: re.Match[str]) -> str:
    """They said they were → they said they are."""
    now = {"was": "is", "were": "are", "had": "has", "could": "can", "would": "will"}
    word, subject = now[found[4].lower()], found[3].lower()
    if subject == "i":
        word = {"is": "am", "has": "have"}.get(word, word)
    elif subject in ("you", "we", "they"):
        word = {"has": "have"}.get(word, word)
    return f"{found[1]} {found[2] or ''}{found[3]} {word}"


def _would(found: re.Match[str]) -> str:
    """Would in the if-clause where the sentence has it in the other: nothing that happened."""
    before = re.split(r"[.!?\n]", found.string[: found.start()])[-1]
    after = re.split(r"[.!?\n]", found.string[found.end() :])[0]
    if not re.search(r"\b(?:would|could|might)|\w['’ ]d\b", f"{before} | {after}", re.IGNORECASE):
        return found[0]
    return f"if {found[1]} would {'have' if found[2].lower() == 'had' else 'be'}"


def _at_end(ending: str, mark: str = "", where: str = "") -> Callable[[str, Random], str]:
    """Adds words at the end of the last sentence where that is a statement with a verb.

    where: how such a sentence must begin.
    """
    host = re.compile(where, re.IGNORECASE)

    def change(text: str, random: Random) -> str:
        last = re.split(r"(?<=[.!?])\s+", text.strip())[-1]
        is_statement = _VERB.search(last) and host.match(last) and len(last.split()) >= _N_WORDS
        if not is_statement or _QUESTION.search(text) or ending.strip(", ") in last[-20:]:
            return text
        return _PLAIN_END.sub(
            lambda found: f"{found[1]}{ending}{mark or found[3]}{found[4]}", text, count=1
        )

    return change


def _insert(word: str, where: str) -> Callable[[str, Random], str]:
    """Puts a word before the group of one of the places found, which chance chooses."""
    pattern = re.compile(where, re.IGNORECASE)

    def change(text: str, random: Random) -> str:
        places = [found.start(1) for found in pattern.finditer(text)]
        if not places:
            return text
        place = random.choice(places)
        return f"{text[:place]}{word} {text[place:]}"

    return change


def _some_words(to: str) -> Callable[[str, Random], str]:
    """Changes one in ten words, at least one: content words of at least five letters."""
    change_word = {"hashtag": _hashtag, "swap": _swap_letters, "key": _neighbour_key}[to]

    def change(text: str, random: Random) -> str:
        words = [
            found
            for found in _CONTENT_WORD.finditer(text)
            if found[0].lower() not in FUNCTION_WORDS
        ]
        n_chosen = max(1, round(_SHARE * len(text.split())))
        chosen = random.sample(words, min(n_chosen, len(words)))
        for found in sorted(chosen, key=lambda one: -one.start()):
            new = change_word(found[0], random)
            text = text[: found.start()] + new + text[found.end() :]
        return text

    return change


def _hashtag(word: str, random: Random) -> str:
    return f"#{word}"


def _swap_letters(word: str, random: Random) -> str:
    """Two letters inside the word that differ change places."""
    places = [place for place in range(1, len(word) - 2) if word[place] != word[place + 1]]
    if not places:
        return word
    place = random.choice(places)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _neighbour_key(word: str, random: Random) -> str:
    place = random.randrange(1, len(word))
    keys = _NEIGHBOURS.get(word[place].lower(), word[place])
    new = random.choice(keys)
    return word[:place] + (new.upper() if word[place].isupper() else new) + word[place + 1 :]


def _no_punctuation(text: str, random: Random) -> str:
    """A mark between two figures stays."""
    without, n_marks = re.subn(r"(?<!\d)[.,!?;:\"“”()…]+|[.,!?;:\"“”()…]+(?!\d)", " ", text)
    return re.sub(r" {2,}", " ", without).strip() if n_marks else text


WRITERS: dict[str, Callable[[re.Match[str]], str]] = {"after": _after, "now": _now, "would": _would}
CHANGES: dict[str, Callable[..., Callable[[str, Random], str]]] = {
    "at_end": _at_end,
    "insert": _insert,
    "some_words": _some_words,
    "lower": lambda: lambda text, random: text.lower(),
    "upper": lambda: lambda text, random: text.upper(),
    "no_punctuation": lambda: _no_punctuation,
    "emoji": lambda: lambda text, random: f"{text.rstrip()} {random.choice(_NEUTRAL_EMOJI)}",
}
