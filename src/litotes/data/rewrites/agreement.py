"""Agreement and the verb be: endings levelled, be and have left out."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import SENTENCE, chain, one_of, substitute
from litotes.data.rewrites.rewrite import Change, Rewrite
from litotes.data.rewrites.verbs import BY_ING, BY_PARTICIPLE, BY_THIRD, VERBS
from litotes.data.rewrites.words import ADJECTIVES, NOUNS, PLURALS

_THIRD = one_of(word for word in BY_THIRD if word not in ("is", "costs"))
_SINGLE = (
    rf"(he|she|it|this|that|who|which|(?:the|this|that|my|our) {one_of([*NOUNS, 'food', 'staff'])})"
)
_BASE = one_of(set(VERBS) - {"be", "can"})
_CLAUSE = (
    rf"(?:{SENTENCE}|(?<=[,;] )|(?<=\band )|(?<=\bbut )|(?<=\bbecause )|(?<=\bwhat )|(?<=\bthat ))"
)
_ING = one_of(BY_ING)
_ADJECTIVE = rf"(?:(?:very|so|really|too|quite|pretty|super) )?(?:{one_of(ADJECTIVES)})"
_PLACE = "(?:at|in|on|near|next to|behind|opposite|inside|outside|around|across)"
_SPOT = one_of(
    "airport area bar beach bus cafe car centre city corner country door heart hospital hotel"
    " kitchen mall office park pool pub queue restaurant river road room school seaside shop"
    " shops sea station store street suburb suburbs table town train village window"
)
_NOT_PLACE = "(?<!up )(?<!over )(?<!out )(?<!people )(?<!in )(?<!from )(?<!who )"
_SHORT = (
    "(?<!of )(?<!about )(?<!with )(I'm|you're|he's|she's|it's|we're|they're|this is|that's|that is"
    "|he is|she is|it is|we are|they are|you are|I am)"
)
_DIFFERENT = one_of(
    word for word, verb in BY_PARTICIPLE.items() if word not in (verb.past, verb.base)
)
_FINITE = one_of(set(VERBS) - set(NOUNS) - ADJECTIVES - {"be", "close", "like", "open"})
_MANY = rf"(?:(?:the|my|our|your|these|many|most|some) )?{one_of([*PLURALS, 'people', 'children'])}"


def _subject_only(found: re.Match[str]) -> str:
    return re.split(r"['’ ]", found[1])[0]


def _gonna(found: re.Match[str]) -> str:
    return f"{_subject_only(found)} gonna"


def _without_be(after: str) -> Change:
    return substitute(_SHORT, _subject_only, after=after)


AGREEMENT = {
    "zero-third": Rewrite(
        about="no -s in the third person: it taste good",
        skips="no he, she, it, this, that, who or listed noun straight before a listed verb in -s",
        change=substitute(
            rf"{_SINGLE} ((?:always |really |just |also |never |only )?)({_THIRD})",
            lambda found: f"{found[1]} {found[2]}{BY_THIRD[found[3].lower()].base}",
        ),
        examples=(
            ("It tastes good.", "It taste good."),
            ("The place looks nice", "The place look nice"),
            ("My brother really wants to go, she says.", "My brother really want to go, she say."),
        ),
        feature=170,
    ),
    "all-s": Rewrite(
        about="-s for every person: I loves it",
        skips="no clause that begins with I, we or they and a listed verb",
        change=substitute(
            rf"{_CLAUSE}(I|we|they) ((?:always |really |just |also |never )?)({_BASE})",
            lambda found: f"{found[1]} {found[2]}{VERBS[found[3].lower()].third}",
            unless="n't",
        ),
        examples=(
            ("I love this place.", "I loves this place."),
            ("They know the menu", "They knows the menu"),
            ("It is good, and we always go there.", "It is good, and we always goes there."),
        ),
        feature=171,
    ),
    "theres-plural": Rewrite(
        about="there’s and there was before a plural: there’s two men",
        skips="no “there are” or “there were”",
        change=chain(
            substitute(f"{_NOT_PLACE}there are", "there's", unless=" ?n't"),
            substitute(f"{_NOT_PLACE}there were", "there was"),
        ),
        examples=(
            ("There are two menus.", "There's two menus."),
            ("I know there were people waiting", "I know there was people waiting"),
            ("There are no tables left!", "There's no tables left!"),
        ),
        feature=172,
    ),
    "be-drop-progressive": Rewrite(
        about="be left out before an -ing form: they always complaining",
        skips="no pronoun with am, is or are and a listed verb in -ing",
        change=_without_be(rf" (?:always |still |just |really |not )?{_ING}\b"),
        examples=(
            ("They are always complaining.", "They always complaining."),
            ("I'm going home", "I going home"),
            ("He's still waiting.", "He still waiting."),
        ),
        feature=174,
    ),
    "be-drop-gonna": Rewrite(
        about="be left out before gonna: I gonna go",
        skips="no pronoun with am, is or are and “gonna” or “going to”",
        change=substitute(rf"{_SHORT} (?:gonna|going to)(?= (?:{_BASE}|be)\b)", _gonna, after="."),
        examples=(
            ("I'm gonna go back.", "I gonna go back."),
            ("They are going to close", "They gonna close"),
            ("He's going to be late.", "He gonna be late."),
        ),
        feature=175,
    ),
    "be-drop-noun": Rewrite(
        about="be left out before a noun: he a good waiter",
        skips="no pronoun with am, is or are and an article or possessive",
        change=_without_be(" (?:an?|the|my|our) (?!lot|bit|few)"),
        examples=(
            ("It's a good place.", "It a good place."),
            ("They are the best", "They the best"),
            ("He is my brother.", "He my brother."),
        ),
        feature=176,
    ),
    "be-drop-adjective": Rewrite(
        about="be left out before an adjective: it very nice",
        skips="no pronoun with am, is or are and a listed adjective",
        change=_without_be(rf" {_ADJECTIVE}\b"),
        examples=(
            ("It is very nice.", "It very nice."),
            ("They're rude", "They rude"),
            ("I'm so happy!", "I so happy!"),
        ),
        feature=177,
    ),
    "be-drop-place": Rewrite(
        about="be left out before a place: it near the beach",
        skips="no pronoun with am, is or are, a preposition of place and a listed place",
        change=_without_be(
            rf" (?:right |just |still )?{_PLACE} (?:town|(?:the|a|my|our) (?:[a-z]+ )?{_SPOT})\b"
        ),
        examples=(
            ("It is near the beach.", "It near the beach."),
            ("They're in town", "They in town"),
            ("We are at the bar.", "We at the bar."),
        ),
        feature=178,
    ),
    "have-drop": Rewrite(
        about="have left out before a participle: I been there",
        skips="no I, we, they or you with have and been, seen, done …; a participle like its past",
        change=substitute(
            rf"(I|we|they|you)(?:'ve| have) ((?:never |already |just |ever )?)"
            rf"({_DIFFERENT})",
            r"\1 \2\3",
        ),
        examples=(
            ("I have been there twice.", "I been there twice."),
            ("We've seen better", "We seen better"),
            ("They have never done that.", "They never done that."),
        ),
        feature=179,
    ),
    "was-all": Rewrite(
        about="was for every person: we was hungry",
        skips="no we, you or they straight before “were”",
        change=substitute("(we|you|they) were", r"\1 was"),
        examples=(
            ("We were hungry.", "We was hungry."),
            ("They were so kind", "They was so kind"),
            ("I thought you were open.", "I thought you was open."),
        ),
        feature=180,
    ),
    "plural-s": Rewrite(
        about="-s after a plural noun but not after a pronoun: people says",
        skips="no clause that begins with people or a listed plural and a listed verb",
        change=substitute(
            rf"{_CLAUSE}({_MANY}) ({_FINITE})",
            lambda found: f"{found[1]} {VERBS[found[2].lower()].third}",
        ),
        examples=(
            ("People love it here.", "People loves it here."),
            ("The kids want to go back", "The kids wants to go back"),
            ("My friends hate this place.", "My friends hates this place."),
        ),
        feature=183,
    ),
}
