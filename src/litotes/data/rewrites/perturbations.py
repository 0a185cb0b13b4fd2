"""Plain perturbations, which belong to no variety: case, punctuation, emoji, length, typos."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from litotes.data.rewrites.matching import one_of, substitute
from litotes.data.rewrites.rewrite import Change, Rewrite
from litotes.data.rewrites.words import ADJECTIVES, FUNCTION_WORDS

_WORD = re.compile(r"(?<![\w'’#@-])[A-Za-z]+(?![\w'’-])")
_NEUTRAL_EMOJI = ("🍴", "📍", "📱", "📷", "🗓", "🚪", "🏠", "🪑")
"""Things, which say nothing about what the writer thinks of them."""
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
    for row in _KEYS
    for place, key in enumerate(row)
}
_N_LETTERS = 5
_SHARE = 0.1


def _content_words(text: str, n_letters: int) -> list[re.Match[str]]:
    return [
        found
        for found in _WORD.finditer(text)
        if len(found[0]) >= n_letters and found[0].lower() not in FUNCTION_WORDS
    ]


def _some_words(change_word: Callable[[str, Random], str], n_letters: int) -> Change:
    """Changes one in ten words, at least one."""

    def change(text: str, random: Random) -> str:
        words = _content_words(text, n_letters)
        n_chosen = max(1, round(_SHARE * len(text.split())))
        chosen = random.sample(words, min(n_chosen, len(words)))
        for found in sorted(chosen, key=lambda one: -one.start()):
            new = change_word(found[0], random)
            text = text[: found.start()] + new + text[found.end() :]
        return text

    return change


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


def _hashtag(word: str, random: Random) -> str:
    return f"#{word}"


def _emoji(text: str, random: Random) -> str:
    return f"{text.rstrip()} {random.choice(_NEUTRAL_EMOJI)}"


def _no_punctuation(text: str, random: Random) -> str:
    """A mark between two figures stays."""
    without, n_marks = re.subn(r"(?<!\d)[.,!?;:\"“”()…]+|[.,!?;:\"“”()…]+(?!\d)", " ", text)
    return re.sub(r" {2,}", " ", without).strip() if n_marks else text


def _long_vowel(found: re.Match[str]) -> str:
    first, vowel, rest = (part for part in found.groups() if part is not None)
    return f"{first}{vowel[0] * 3}{vowel[1:]}{rest}"


PERTURBATIONS = {
    "lower-case": Rewrite(
        about="small letters throughout",
        skips="no capital letter",
        change=lambda text, random: text.lower(),
        examples=(
            ("The Food was GREAT.", "the food was great."),
            ("I left", "i left"),
            ("Ask @Tom about Rome", "ask @Tom about rome"),
        ),
    ),
    "upper-case": Rewrite(
        about="capital letters throughout",
        skips="no small letter",
        change=lambda text, random: text.upper(),
        examples=(
            ("The food was great.", "THE FOOD WAS GREAT."),
            ("I left", "I LEFT"),
            ("See https://a.b/c now", "SEE https://a.b/c NOW"),
        ),
    ),
    "no-punctuation": Rewrite(
        about="punctuation left out",
        skips="no mark other than apostrophes, hyphens and those between figures",
        change=_no_punctuation,
        examples=(
            ("Good food, bad service.", "Good food bad service"),
            ("It cost 3.50, really!", "It cost 3.50 really"),
            ("Why? (I asked)", "Why I asked"),
        ),
    ),
    "no-apostrophes": Rewrite(
        about="apostrophes left out: dont, its",
        skips="no apostrophe between letters",
        change=lambda text, random: re.sub(r"(?<=[a-zA-Z])['’](?=[a-zA-Z])", "", text),
        examples=(
            ("I don't know.", "I dont know."),
            ("It’s Tom's", "Its Toms"),
            ("We weren't there", "We werent there"),
        ),
    ),
    "exclamations": Rewrite(
        about="three exclamation marks for one",
        skips="no single exclamation mark",
        change=lambda text, random: re.sub(r"(?<![!?])!(?![!?])", "!!!", text),
        examples=(
            ("Great!", "Great!!!"),
            ("No! I mean it.", "No!!! I mean it."),
            ("Go there! Now!", "Go there!!! Now!!!"),
        ),
    ),
    "emoji": Rewrite(
        about="an emoji of a thing at the end",
        skips="never: every text can have one",
        change=_emoji,
        examples=(
            ("Great food.", "Great food. 🍴"),
            ("We left", "We left 🍴"),
            ("Why?", "Why? 🍴"),
        ),
        settles=False,
    ),
    "elongation": Rewrite(
        about="a long vowel in a word of degree: sooo, veeery",
        skips="no so, very or really before a listed adjective, much or many",
        change=substitute(
            "(?:(s)(o)()|(v)(e)(ry)|(r)(ea)(lly))",
            _long_vowel,
            after=rf" (?:{one_of(ADJECTIVES)}|much|many)\b",
            n=1,
        ),
        examples=(
            ("It was so good, so I stayed.", "It was sooo good, so I stayed."),
            ("Very rude staff, very slow", "Veeery rude staff, very slow"),
            ("A really bad idea", "A reeeally bad idea"),
        ),
        settles=False,
    ),
    "hashtags": Rewrite(
        about="one word in ten as a hashtag",
        skips="no content word of at least five letters",
        change=_some_words(_hashtag, _N_LETTERS),
        examples=(
            ("Great food.", "#Great food."),
            ("We liked it", "We #liked it"),
            ("Lovely here!", "#Lovely here!"),
        ),
        settles=False,
    ),
    "typo-swap": Rewrite(
        about="two letters change places in one word in ten",
        skips="no content word of at least five letters",
        change=_some_words(_swap_letters, _N_LETTERS),
        examples=(
            ("A great day.", "A graet day."),
            ("We liked it", "We liekd it"),
            ("Lovely!", "Lvoely!"),
        ),
        settles=False,
    ),
    "typo-key": Rewrite(
        about="a key beside the right one in one word in ten",
        skips="no content word of at least five letters",
        change=_some_words(_neighbour_key, _N_LETTERS),
        examples=(
            ("A great day.", "A grest day."),
            ("We liked it", "We likrd it"),
            ("Lovely!", "Locely!"),
        ),
        settles=False,
    ),
}
