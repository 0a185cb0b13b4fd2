"""Comparison and degree: adjectives and the adverbs beside them."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import chain, one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.words import ADJECTIVES, FUNCTION_WORDS, listed

_GRADED = {
    "busier": "busy", "busiest": "busy", "bigger": "big", "biggest": "big", "cheaper": "cheap",
    "cheapest": "cheap", "cleaner": "clean", "cleanest": "clean", "closer": "close",
    "easier": "easy", "easiest": "easy", "faster": "fast", "fastest": "fast",
    "fresher": "fresh", "freshest": "fresh", "funnier": "funny", "funniest": "funny",
    "friendlier": "friendly", "friendliest": "friendly", "happier": "happy", "happiest": "happy",
    "harder": "hard", "hardest": "hard", "healthier": "healthy", "louder": "loud",
    "nicer": "nice", "nicest": "nice", "older": "old", "oldest": "old", "poorer": "poor",
    "quicker": "quick", "quieter": "quiet", "safer": "safe", "slower": "slow",
    "smaller": "small", "smallest": "small", "smarter": "smart", "stronger": "strong",
    "stupider": "stupid", "sweeter": "sweet", "sweetest": "sweet", "tastier": "tasty",
    "tastiest": "tasty", "uglier": "ugly", "warmer": "warm", "weaker": "weak",
}  # fmt: skip
_IRREGULAR = ("better", "best", "worse", "worst")
_LONG = listed(
    "amazing annoying beautiful boring comfortable crowded delicious disgusting exciting expensive"
    " fantastic helpful horrible important interesting popular relaxing stupid useful wonderful"
)
_ADVERBS = {
    "quickly": "quick", "slowly": "slow", "badly": "bad", "nicely": "nice", "properly": "proper",
    "quietly": "quiet", "loudly": "loud", "cheaply": "cheap", "perfectly": "perfect",
    "beautifully": "beautiful", "easily": "easy", "regularly": "regular", "terribly": "terrible",
}  # fmt: skip
_ADJECTIVE = one_of(ADJECTIVES)
_MEASURED = listed(
    "big cold creamy crispy dry fast full hard hot huge large light long low quick quiet rich salty"
    " simple small soft spicy strong sweet tender thick thin tiny warm well"
)
"""Of these there may be too much, so that praise would read as a complaint."""
_PRAISE = one_of(ADJECTIVES - set(_MEASURED))
_MORE = one_of(word for word in _GRADED if word.endswith("er"))
_MOST = one_of(word for word in _GRADED if word.endswith("est"))
_NO_NOUN = rf"\s*(?:[.,!?;:)]|$)|\s(?:{one_of(FUNCTION_WORDS)})\b"
_ENDS = (
    r"\s*(?:[.,!?;)]|$)|\s(?:and (?:the|we|i|they|it)|but|when|because|as|with|to|for|in|at|on)\b"
)


def _double(found: re.Match[str]) -> str:
    return f"{'most' if found[1].lower().endswith('st') else 'more'} {found[1].lower()}"


def _analytic(found: re.Match[str]) -> str:
    degree = "most" if found[0].lower().endswith("st") else "more"
    return f"{degree} {_GRADED[found[0].lower()]}"


def _synthetic(found: re.Match[str]) -> str:
    ending = "er" if found[1].lower() == "more" else "est"
    adjective = found[2]
    return adjective + (ending[1:] if adjective.endswith("e") else ending)


COMPARISON = {
    "double-comparative": Rewrite(
        about="more and -er together: more easier, most best",
        skips="none of the listed comparatives, or “more” stands there already",
        change=substitute(
            rf"(?<!more )(?<!most )(?<!had )(?<!'d )({one_of([*_GRADED, *_IRREGULAR])})",
            _double,
            unless=" (?:wishes|regards|off|man)\\b",
        ),
        examples=(
            ("This is easier to follow.", "This is more easier to follow."),
            ("The best coffee in town", "The most best coffee in town"),
            ("It got much worse.", "It got much more worse."),
        ),
        feature=78,
    ),
    "synthetic-comparison": Rewrite(
        about="-er and -est on long adjectives: the beautifulest",
        skips="no more or most before a listed long adjective",
        change=substitute(rf"(more|most) ({one_of(_LONG)})", _synthetic),
        examples=(
            ("The most boring film ever.", "The boringest film ever."),
            ("It is more expensive now", "It is expensiver now"),
            ("Most beautiful beach!", "Beautifulest beach!"),
        ),
        feature=79,
    ),
    "analytic-comparison": Rewrite(
        about="more and most before short adjectives: more easy",
        skips="none of the listed regular forms; a comparative before its noun: “nicer drinks”",
        change=chain(
            substitute(rf"(?<!more )(?<!most ){_MOST}", _analytic),
            substitute(rf"(?<!more )(?<!most ){_MORE}", _analytic, after=_NO_NOUN),
        ),
        examples=(
            ("This is easier to follow.", "This is more easy to follow."),
            ("The nicest staff in town", "The most nice staff in town"),
            ("Cheaper than home.", "More cheap than home."),
        ),
        feature=80,
    ),
    "much-comparative": Rewrite(
        about="much as the mark of a comparative: much expensive than",
        skips="no “more” with a listed adjective and “than”",
        change=substitute(
            rf"(?<!much )more ({one_of(ADJECTIVES - {'good'})}) than", r"much \1 than"
        ),
        examples=(
            ("It is more expensive than last year.", "It is much expensive than last year."),
            ("More helpful than the others", "Much helpful than the others"),
            ("He was more rude than the waiter.", "He was much rude than the waiter."),
        ),
        feature=81,
    ),
    "real-good": Rewrite(
        about="an adjective as a degree adverb: real good",
        skips="no really, absolutely, awfully … before a listed adjective",
        change=swap(
            {
                "really": "real",
                "absolutely": "absolute",
                "awfully": "awful",
                "terribly": "terrible",
                "extremely": "extreme",
                "incredibly": "incredible",
                "seriously": "serious",
            },
            after=rf" {_ADJECTIVE}\b",
        ),
        examples=(
            ("The food was really good.", "The food was real good."),
            ("Extremely rude staff", "Extreme rude staff"),
            ("It is really easy to book.", "It is real easy to book."),
        ),
        feature=220,
    ),
    "come-quick": Rewrite(
        about="an adjective as an adverb: come quick",
        skips="no quickly, slowly, badly, properly … at the end of its phrase",
        change=swap(_ADVERBS, after=_ENDS),
        examples=(
            ("The food came quickly.", "The food came quick."),
            ("He drove slowly and we left", "He drove slow and we left"),
            ("They treated us badly!", "They treated us bad!"),
        ),
        feature=221,
    ),
    "too-very": Rewrite(
        about="too for very: too nice a place",
        skips="no “very” before a listed adjective or “much”; very big, hot, well … may be praise",
        change=substitute("(?<!not )very", "too", after=rf" (?:{_PRAISE}\b|much\s*(?:[.,!?]|$))"),
        examples=(
            ("The staff are very helpful.", "The staff are too helpful."),
            ("Very nice place", "Too nice place"),
            ("Thank you very much!", "Thank you too much!"),
        ),
        feature=222,
    ),
}
