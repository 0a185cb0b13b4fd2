"""Word order: questions without inversion, inversion inside sentences, fronting, imperatives."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import SENTENCE, chain, one_of, substitute
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import VERBS
from litotes.data.rewrites.words import NOUNS

_WH = "(what|where|why|how|when|who)"
_BE = "(is|are|was|were|can|could|will|would|should|have|has|had)"
_WHO = rf"(I|you|he|she|it|we|they|this|that|(?:the|my|our|your) {one_of(NOUNS)})"
_BASE = one_of(set(VERBS) - {"be"})
_ASKING = (
    r"((?:know|knows|wonder|wondering|ask|asked|understand|see|idea|explain|remember|sure|tell me"
    r"|imagine|guess)(?: about| me| them)?)"
)
_LIKED = "(love|loved|like|liked|enjoy|enjoyed|hate|hated|recommend|recommended|ordered|tried)"
_ORDERS = one_of(
    "ask avoid book bring call check come enjoy expect find follow forget get give go keep leave"
    " look order pay skip spend stay stop take try use visit wait watch"
)

_NO_NOUN = r"(?!(?:book|call|check|order|visit|wait) (?:at|for|in|to|with)\b)"


def _did(found: re.Match[str]) -> str:
    return f"{found[1]} {VERBS[found[2].lower()].past}"


def _does(found: re.Match[str]) -> str:
    return f"{found[1]} {VERBS[found[2].lower()].third}"


def _small(word: str) -> str:
    return word if word == "I" or word[0] != word[0].upper() else word[0].lower() + word[1:]


WORD_ORDER = {
    "fronting": Rewrite(
        about="the object first: the food I loved",
        skips="no sentence of I or we, a listed verb and a short object; the first of a list",
        change=substitute(
            rf"{SENTENCE}(I|We) ((?:really |absolutely )?{_LIKED}) "
            rf"((?:the|this|their|our|my|these|those) (?:[a-z]+ ){{0,2}}[a-z]+)",
            lambda found: f"{found[4][0].upper()}{found[4][1:]} {_small(found[1])} {found[2]}",
            after=r"\s*[.!;]|\s*$|, (?:but|and (?:we|I|it|they)) ",
        ),
        examples=(
            ("I loved the food.", "The food I loved."),
            (
                "Great. We really enjoyed the atmosphere!",
                "Great. The atmosphere we really enjoyed!",
            ),
            ("I hate this place", "This place I hate"),
        ),
        feature=224,
    ),
    "indirect-inversion": Rewrite(
        about="inversion in an indirect question: I wonder what are they doing",
        skips="no know, wonder, ask, see … with a question word, a subject and be or a modal",
        change=substitute(rf"{_ASKING} {_WH} {_WHO} {_BE}", r"\1 \2 \4 \3", unless="n't"),
        examples=(
            ("I wonder what they are doing.", "I wonder what are they doing."),
            ("I don't know where it is", "I don't know where is it"),
            ("They asked why we were late.", "They asked why were we late."),
        ),
        feature=227,
    ),
    "wh-no-inversion": Rewrite(
        about="no inversion after a question word: what they are doing?",
        skips="no sentence that begins with a question word, a verb and a pronoun",
        change=chain(
            substitute(rf"{SENTENCE}{_WH} (?:do) {_WHO}(?= {_BASE}\b)", r"\1 \2", after="."),
            substitute(
                rf"{SENTENCE}{_WH} did {_WHO} ({_BASE})",
                lambda found: f"{found[1]} {found[2]} {VERBS[found[3].lower()].past}",
            ),
            substitute(rf"{SENTENCE}{_WH} {_BE} (I|you|he|she|it|we|they)", r"\1 \3 \2"),
        ),
        examples=(
            ("What are you doing?", "What you are doing?"),
            ("Bad. Why did they close?", "Bad. Why they closed?"),
            ("How do you do it?", "How you do it?"),
        ),
        feature=228,
    ),
    "yes-no-no-inversion": Rewrite(
        about="no inversion in a yes/no question: you liked it?",
        skips="no question that begins with do, did, does, be or have and a pronoun",
        change=chain(
            substitute(
                rf"{SENTENCE}did (I|you|he|she|it|we|they) ({_BASE})", _did, after=r"[^.!\n]*\?"
            ),
            substitute(rf"{SENTENCE}does (he|she|it) ({_BASE})", _does, after=r"[^.!\n]*\?"),
            substitute(rf"{SENTENCE}do (I|you|we|they)(?= {_BASE}\b)", r"\1", after=r"[^.!\n]*\?"),
            substitute(
                rf"{SENTENCE}(am|is|are|was|were|have|can|will|should) (I|you|he|she|it|we|they)",
                lambda found: f"{found[2]} {found[1].lower()}",
                after=r" [^.!\n]*\?",
            ),
        ),
        examples=(
            ("Did you like it?", "You liked it?"),
            ("Do they know?", "They know?"),
            ("Nice. Is it open?", "Nice. It is open?"),
        ),
        feature=229,
    ),
    "subject-imperative": Rewrite(
        about="a subject in an imperative: you go there",
        skips="no sentence that begins with an imperative of a listed verb; with I, my, every …",
        change=substitute(
            rf"{SENTENCE}((?=(?-i:[A-Z])){_NO_NOUN}{_ORDERS})",
            lambda found: f"you {found[1].lower()}",
            after=r" (?:the|this|it|here|there|a|an|your|them|elsewhere|away|at|to|for|with|in)\b",
            unless=r"[^.!?\n]*\b(?:I|my|we|our|us|me|every|often|regularly)\b",
        ),
        examples=(
            ("Avoid this place.", "You avoid this place."),
            ("Great food. Go there!", "Great food. You go there!"),
            ("Try the soup", "You try the soup"),
        ),
        feature=233,
    ),
}
