"""Articles and determiners: left out, added, exchanged, doubled."""

from __future__ import annotations

import re
from collections.abc import Callable

from litotes.data.rewrites.matching import chain, one_of, substitute
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.words import ADJECTIVES, NOUNS, PLURALS

_ADJECTIVE = rf"(?:{one_of(ADJECTIVES)} )?"
_NOUN = one_of(NOUNS)
_PLURAL = one_of(PLURALS)
_TIMES = ("hour", "minute", "month", "morning", "night", "week", "year")
_COUNTED = one_of(noun for noun in NOUNS if noun not in _TIMES)  # "twice a week" keeps its article
_TREAT = (
    "(?:break|breakfast|chat|chuckle|coffee|cold|cough|dinner|drink|fever|giggle|headache|laugh"
    "|lunch|meal|nap|rest|shower|stroll|swim|tea|walk)"
)
_GENERAL = (
    "(?:breakfast|business|christmas|church|college|dinner|education|hospital|life|lunch|nature"
    "|politics|religion|school|science|society|summer|university|winter)"
)
_IS_PLACE = "(?:in|at|to|for|of|about|with|after|before|during|from)"

_PREDICATE = "(?:'(?:s|re|m)|n't|\\b(?:this|these|is|are|was|were|am|be|been|not|as)) "


def _put(word: str) -> Callable[[re.Match[str]], str]:
    """Puts a word before what was found, which then no longer begins a sentence."""
    return lambda found: f"{word} {found[1][0].lower()}{found[1][1:]}"


ARTICLES = {
    "zero-definite": Rewrite(
        about="the is left out before a noun: main reason was price",
        skips="no “the” before a listed noun, with or without a listed adjective between",
        change=substitute(rf"the ({_ADJECTIVE}(?:{_NOUN}|{_PLURAL}|food|service|staff))", r"\1"),
        examples=(
            ("The food was cold.", "Food was cold."),
            ("We asked for the menu again", "We asked for menu again"),
            ("I love the nice staff at the bar.", "I love nice staff at bar."),
        ),
        feature=62,
    ),
    "zero-indefinite": Rewrite(
        about="a or an is left out before a noun: it is nice place",
        skips="no “a” or “an” before a listed noun; nouns of time, as in “twice a week”",
        change=substitute(rf"an? ({_ADJECTIVE}{_COUNTED})", r"\1"),
        examples=(
            ("It is a nice place.", "It is nice place."),
            ("A friend told me", "Friend told me"),
            ("We had an awful meal there", "We had awful meal there"),
        ),
        feature=63,
    ),
    "one-indefinite": Rewrite(
        about="one as the indefinite article: we met one waiter",
        skips="no “a” or “an” before a listed noun",
        change=substitute(rf"an? ({_ADJECTIVE}{_COUNTED})", r"one \1"),
        examples=(
            ("There is a good cafe here.", "There is one good cafe here."),
            ("A waiter shouted at us", "One waiter shouted at us"),
            ("It was a bad idea", "It was one bad idea"),
        ),
        feature=66,
    ),
    "demonstrative-for-the": Rewrite(
        about="that for the: that waiter was rude",
        skips="no “the” before a listed singular noun",
        change=substitute(rf"the ({_ADJECTIVE}{_NOUN})", r"that \1"),
        examples=(
            ("The waiter was rude.", "That waiter was rude."),
            ("I like the place", "I like that place"),
            ("We left by the door.", "We left by that door."),
        ),
        feature=67,
    ),
    "definite-for-indefinite": Rewrite(
        about="the for a or an: we had the good laugh",
        skips="no form of “have” before “a” and a listed meal, rest or ailment; after a negation",
        change=substitute(
            rf"(have|has|had|having|got|get|grab|grabbed) an? ({_ADJECTIVE}{_TREAT})",
            r"\1 the \2",
            unless=rf" {_NOUN}\b",
            unless_before=r"(?:n't|\b(?:not|never|without|rarely|hardly)) ",
        ),
        examples=(
            ("I had a headache all day.", "I had the headache all day."),
            ("We had a good laugh", "We had the good laugh"),
            ("Having a coffee with mum", "Having the coffee with mum"),
        ),
        feature=60,
    ),
    "definite-for-zero": Rewrite(
        about="the where the standard has none: in the life",
        skips="no preposition straight before a listed institution, meal or idea; “life that …”",
        change=substitute(
            rf"({_IS_PLACE}) ({_GENERAL})",
            r"\1 the \2",
            unless=rf"[- ](?:{_NOUN}|{_PLURAL})|,? (?:that|which|who|where)\b",
            unless_before=r"\b(?:c[ao]m(?:es?|ing)|bring\w*|brought|out|slice|spark|spice|way) ",
        ),
        examples=(
            ("We stopped for lunch.", "We stopped for the lunch."),
            ("That is the worst thing in life", "That is the worst thing in the life"),
            ("He went to school there.", "He went to the school there."),
        ),
        feature=64,
    ),
    "double-determiner": Rewrite(
        about="a demonstrative before a possessive: this our problem",
        skips="no my, our or their before a listed noun; after be or not: “not my job”",
        change=chain(
            substitute(
                rf"((?:my|our|their) {_ADJECTIVE}{_NOUN})",
                _put("this"),
                unless_before=_PREDICATE,
            ),
            substitute(
                rf"((?:my|our|their) {_ADJECTIVE}{_PLURAL})",
                _put("these"),
                unless_before=_PREDICATE,
            ),
        ),
        examples=(
            ("Our meal was cold.", "This our meal was cold."),
            ("I lost my phone", "I lost this my phone"),
            ("They ignored our questions.", "They ignored these our questions."),
        ),
        feature=59,
    ),
    "singular-demonstrative": Rewrite(
        about="this and that before a plural: this people",
        skips="no “these” or “those” before people, children, men, women or a listed plural",
        change=chain(
            substitute(rf"these(?= {_ADJECTIVE}(?:{_PLURAL}|people|children|men|women))", "this"),
            substitute(rf"those(?= {_ADJECTIVE}(?:{_PLURAL}|people|children|men|women))", "that"),
        ),
        examples=(
            ("These people are kind.", "This people are kind."),
            ("I hate those prices", "I hate that prices"),
            ("Those old games were fun.", "That old games were fun."),
        ),
        feature=71,
    ),
}
