"""Verb forms: pasts and participles made regular, unmarked or exchanged."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import BY_ING, BY_PARTICIPLE, REGULAR_PAST, VERBS
from litotes.data.rewrites.words import FUNCTION_WORDS, NOUNS, PLURALS, plural

_REGULARISED = {
    "caught": "catched", "knew": "knowed", "known": "knowed", "grew": "growed", "grown": "growed",
    "threw": "throwed", "thrown": "throwed", "blew": "blowed", "blown": "blowed",
    "drew": "drawed", "taught": "teached", "ran": "runned", "heard": "heared",
    "told": "telled", "sold": "selled", "built": "builded",
}  # fmt: skip
_UNMARKED = {"gave": "give", "came": "come", "ran": "run", "ate": "eat", "saw": "see"}
_SUBJECT = "(I|we|they|he|she|it|you|who|which)"
_DIFFERENT = one_of(
    verb.participle
    for verb in VERBS.values()
    if verb.past != verb.participle and verb.base not in ("be", "come", "run", "show", "become")
)
_ABSTRACT = ("idea", "issue", "job", "option", "problem", "question", "reason", "step", "thing")
_DOERS = one_of(
    {*NOUNS, *PLURALS, "people", "staff", "kids"} - {*_ABSTRACT, *map(plural, _ABSTRACT)}
    | {"I", "you", "he", "she", "it", "we", "they", "who", "have", "has", "had"}
)
"""Who does something: after “the problem is” an -ing form is a noun."""
_BECOME = one_of(
    "better bigger bored busier cheaper colder closer easier harder hotter involved late lost"
    " married old older sick slower smaller stronger stuck sucked tired used worse"
)
_HAVE = "(?:have|has|had|I've|we've|they've|you've|it's|he's|she's)"
_TURNED = (
    rf" (?:(?:a lot|a bit|much|even|so|too|very|really|far|way|any|slightly) )*{_BECOME}"
    rf"(?:\s*(?:[.,!?;)]|$)| (?:{one_of(FUNCTION_WORDS)})\b)"
    r"| (?:into|through|away|rid of|out of|off the|from|back (?:to|from|in|into)\b|in touch)"
)
"""Where got is become or moved: what one has got one has not gotten."""
_DONE = {"saw": "seen", "rang": "rung", "sang": "sung", "drank": "drunk", "went": "gone"}
_OBJECT = "(?= (?:it|this|that|the|a|my|our|everything|nothing|something|well)\\b)"


def _past_participle(found: re.Match[str]) -> str:
    return f"{found[1]} {found[2] or ''}{BY_PARTICIPLE[found[3].lower()].past}"


def _participle_past(found: re.Match[str]) -> str:
    word = found[2].lower()
    return f"{found[1]} {_DONE.get(word, 'done')}"


VERB_FORMS = {
    "knowed": Rewrite(
        about="irregular verbs made regular: catched, knowed, throwed",
        skips="no caught, knew, grew, threw, drew, heard, told, sold, built …",
        change=swap(_REGULARISED),
        examples=(
            ("I knew it was bad.", "I knowed it was bad."),
            ("He threw it away", "He throwed it away"),
            ("They caught us.", "They catched us."),
        ),
        feature=128,
    ),
    "unmarked-past": Rewrite(
        about="the base form as the past: she give me a menu",
        skips="no subject pronoun straight before gave, came, ran, ate or saw",
        change=substitute(
            rf"{_SUBJECT} ({one_of(_UNMARKED)})",
            lambda found: f"{found[1]} {_UNMARKED[found[2].lower()]}",
        ),
        examples=(
            ("She gave me a menu.", "She give me a menu."),
            ("They came late", "They come late"),
            ("I saw him yesterday.", "I see him yesterday."),
        ),
        feature=129,
    ),
    "had-went": Rewrite(
        about="the past as the participle: he had went",
        skips="no have with a listed participle that differs from its past",
        change=substitute(
            rf"(have|has|had|I've|we've|they've|you've|could've|should've) "
            rf"((?:never |already |just |ever |not )?)({_DIFFERENT})",
            _past_participle,
        ),
        examples=(
            ("He had gone home.", "He had went home."),
            ("I have never eaten better", "I have never ate better"),
            ("They've taken our table.", "They've took our table."),
        ),
        feature=130,
    ),
    "i-seen": Rewrite(
        about="the participle as the past: I seen it, they done well",
        skips="no pronoun before saw, went, rang, drank, or before did with an object",
        change=substitute(
            rf"(I|we|they|he|she|you|who) ({one_of(_DONE)}|did{_OBJECT})", _participle_past
        ),
        examples=(
            ("I saw it coming.", "I seen it coming."),
            ("They did the right thing", "They done the right thing"),
            ("We went there twice.", "We gone there twice."),
        ),
        feature=131,
    ),
    "zero-past": Rewrite(
        about="no ending on a regular past: yesterday I order fish",
        skips="no subject pronoun straight before a listed verb in -ed",
        change=substitute(
            rf"{_SUBJECT} ((?:just |really |also |never )?)({one_of(REGULAR_PAST)})",
            lambda found: f"{found[1]} {found[2]}{REGULAR_PAST[found[3].lower()].base}",
        ),
        examples=(
            ("We ordered the fish.", "We order the fish."),
            ("It tasted great", "It taste great"),
            ("I really enjoyed it.", "I really enjoy it."),
        ),
        feature=132,
    ),
    "a-prefix": Rewrite(
        about="a- before an -ing form: he was a-waiting",
        skips="no pronoun or listed noun with be straight before a listed verb in -ing",
        change=substitute(
            rf"({_DOERS} (?:am|is|are|was|were|been)|(?:I|we|they|you)'ve been|I'm|we're|they're"
            rf"|you're|he's|she's) "
            rf"({one_of(word for word in BY_ING if word[0] not in 'aeio')})",
            r"\1 a-\2",
        ),
        examples=(
            ("We were waiting for an hour.", "We were a-waiting for an hour."),
            ("They're going home", "They're a-going home"),
            ("I am looking at you.", "I am a-looking at you."),
        ),
        feature=134,
    ),
    "gotten": Rewrite(
        about="gotten for got: they have gotten worse",
        skips="no have before “got” and better, worse, used to, into …; what one has got",
        change=substitute(
            rf"{_HAVE} (?:just |only |never |already )?got(?={_TURNED})"
            rf"|{_HAVE} (?:never|ever|finally|recently) got"
            r"|(?:could|should|would|must|may|might)(?:'ve| have) (?:just |also )?got"
            r"|had (?:just |also |already )?got",
            lambda found: f"{found[0]}ten",
            unless=r" to (?!the|this|that|a|my)\b",
        ),
        examples=(
            ("They have got worse.", "They have gotten worse."),
            ("I've got used to it", "I've gotten used to it"),
            ("It has just got better.", "It has just gotten better."),
        ),
        feature=145,
    ),
}
