"""Aspect: progressives, habituals and perfects."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import SENTENCE, chain, one_of, substitute
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import BY_ING, BY_PARTICIPLE, BY_PAST, BY_THIRD, VERBS

_BE = {"i": "am", "he": "is", "she": "is", "it": "is"}
_STATIVE = ("like", "love", "want", "need", "hate", "know", "understand", "prefer", "believe")
_HABIT = "(?:always|usually|often|sometimes|regularly|generally)"
_OFFICE = r"(?! (?:for|as|by|down|against|out|up|in\s*(?:[.,!?;]|$)))"
_HABIT_OF_BE = rf"(?!generally){_HABIT} (?!been|being|had)"
_MOVED = r"(?:gone|come(?! across)|arrived|become|finished(?=\s*(?:[.,!?;]|$)))"
_PARTICIPLE = one_of(word for word in BY_PARTICIPLE if word not in ("been", "got", "had"))
_NO_LIGHT = r"(?!made it|(?:made|done) an? |lost [a-z]+ (?:mind|temper|way))"
_OBJECT = (
    r"(?:it|them|everything"
    r"|(?:an?|the|my|our|their|his|her|your|this|that|these|those) (?!way)(?:[a-z]+ )?"
    r"(?!away|back|down|off|out|up)[a-z]+)"
)
_OBJECT_ENDS = r"\s*(?:[.,!?;]|$)|\s(?:for|with|in|on|at|before|again|and|but|so|since|now|today)\b"
_RESULT = one_of(
    "booked bought broken built changed chosen cleaned closed collected cooked eaten finished fixed"
    " lost made opened ordered paid prepared received replaced returned sent sold stolen taken told"
    " washed won written"
)
"""Participles of verbs that leave something changed."""
_UNDONE = (
    "(?:blocked|completed|deleted|destroyed|done|improved|killed|removed|ruined|solved|spoiled)"
)
_ENDED = (
    "(?:arrived|bought|checked|finished|heard|joined|noticed|realised|received|returned|saw|spent"
    "|started|visited|watched|ate (?:at|here|there)|(?:came|got|went) (?:back|home)|found out"
    "|had (?:breakfast|dinner|lunch)|moved (?:here|into?|out|to)|tried (?:it|the|their|this))"
)
"""After these “just” is seldom “merely”."""
_SPAN = (
    r"(?:since|for (?:over |about |almost |nearly |so |the (?:last|past) )?(?:many|\d+|ages|years"
    r"|months|weeks|decades|long|two|three|four|five|six|ten|a (?:while|year|month|week|decade|long"
    r"|couple|few|day|bit)|an hour))"
)
_TILL_NOW = "(?:before|yet|so far|since|until now|(?:many|several|few|[0-9]+) times|ever)"
_NO_SPAN = (
    r"(?!(?: has|'s) been (?:an?|about|almost|nearly|over|only|more|some|so|too|quite|years|months"
    r"|weeks|ages|the|\d+|one|two|three|four|five|six|ten)\b)"
)
"""It has been a year since: not what still goes on."""
_CLAUSE_START = rf"(?:{SENTENCE}|(?<=, )|(?<=\band )|(?<=\bbut )|(?<=\bbecause )|(?<=\bas ))"
_NO_CLAUSE = (
    r"(?!(?:to|for|since|that|what|how|who|which|when|if|because|but|is|are|was|were|has|have|had"
    r"|will|would|can|never|times|twice|before|like|I|we|he|she|they|you)\b)"
)
_CLAUSE_END = r"(?=[.,!?;]|$)"


def _be(subject: str) -> str:
    return _BE.get(subject.lower(), "are")


def _stative(found: re.Match[str]) -> str:
    verb = VERBS.get(found[2].lower()) or BY_THIRD[found[2].lower()]
    return f"{found[1]} {_be(found[1])} {verb.ing}"


def _habitual(found: re.Match[str]) -> str:
    return f"{found[1]} {_be(found[1])} {found[2]} {VERBS[found[3].lower()].ing}"


def _after(found: re.Match[str]) -> str:
    done, *rest = (found[3] or found[4]).lower().split()
    verb = BY_PARTICIPLE.get(done) or BY_PAST[done]
    be = _be(found[1])
    if (found[2] or "").lower() == " had":
        be = "were" if be == "are" else "was"
    return " ".join([found[1], be, "after", verb.ing, *rest])


def _past_for_perfect(found: re.Match[str]) -> str:
    adverb = found[2] or ""
    return f"{found[1]} {adverb}{BY_PARTICIPLE[found[3].lower()].past}"


def _perfect_for_past(found: re.Match[str]) -> str:
    verb = BY_PAST[found[2].lower()]
    return (
        f"{found[1]} {'has' if found[1].lower() in _BE and found[1] not in 'Ii' else 'have'} "
        + (f"{verb.participle}{found[3]}")
    )


ASPECT = {
    "stative-progressive": Rewrite(
        about="a progressive of a stative verb: I am liking this",
        skips="no pronoun straight before like, love, want, need, hate, know …; questions with do",
        change=substitute(
            rf"(?<!do )(?<!did )(?<!does )(?<!n't )(?!you know)(I|we|they|you|he|she) "
            rf"({one_of([*_STATIVE, *(VERBS[verb].third for verb in _STATIVE)])})",
            _stative,
        ),
        examples=(
            ("I like this place.", "I am liking this place."),
            ("They know the menu", "They are knowing the menu"),
            ("She loves it!", "She is loving it!"),
        ),
        feature=88,
    ),
    "habitual-progressive": Rewrite(
        about="a progressive for a habit: I am always ordering",
        skips="no I, we, they or you with always, usually … and a listed verb; “I always do”",
        change=substitute(
            rf"(?<!do )(I|we|they|you) ({_HABIT}) ({one_of(set(VERBS) - {'be', 'do', 'seem'})})",
            _habitual,
        ),
        examples=(
            ("I always order the fish.", "I am always ordering the fish."),
            ("We usually go on Friday", "We are usually going on Friday"),
            ("They often forget us.", "They are often forgetting us."),
        ),
        feature=89,
    ),
    "habitual-be": Rewrite(
        about="be for a habit: he be always late",
        skips="no am, is or are before always, usually, often, sometimes or regularly",
        change=chain(
            substitute(rf"(?:am|is|are) (?={_HABIT_OF_BE})", "be ", after="."),
            substitute(
                rf"(I|we|they|you|he|she|it)'(?:m|re|s) (?={_HABIT_OF_BE})", r"\1 be ", after="."
            ),
        ),
        examples=(
            ("The staff are always friendly.", "The staff be always friendly."),
            ("He's usually late", "He be usually late"),
            ("It is often busy.", "It be often busy."),
        ),
        feature=90,
    ),
    "do-be": Rewrite(
        about="do be for a habit: they do be always late",
        skips="no am, is or are before always, usually, often, sometimes or regularly",
        change=chain(
            substitute(rf"(?:am|are) (?={_HABIT_OF_BE})", "do be ", after="."),
            substitute(rf"is (?={_HABIT_OF_BE})", "does be ", after="."),
            substitute(rf"(I|we|they|you)'(?:m|re) (?={_HABIT_OF_BE})", r"\1 do be ", after="."),
        ),
        examples=(
            ("The staff are always friendly.", "The staff do be always friendly."),
            ("It is usually busy", "It does be usually busy"),
            ("They're often late.", "They do be often late."),
        ),
        feature=93,
    ),
    "be-sat": Rewrite(
        about="sat and stood for sitting and standing: we were sat there",
        skips="no form of be before sitting or standing; standing for an office",
        change=substitute(
            r"(am|is|are|was|were|been|be|I'm|we're|they're|he's|she's) "
            rf"(sitting|standing{_OFFICE})",
            lambda found: f"{found[1]} {BY_ING[found[2].lower()].past}",
        ),
        examples=(
            ("We were sitting by the window.", "We were sat by the window."),
            ("He's standing there", "He's stood there"),
            ("People are standing around.", "People are stood around."),
        ),
        feature=95,
    ),
    "medial-object": Rewrite(
        about="the object inside the perfect: I have the food ordered",
        skips="no “have”, a participle of a result and a short object; “would have”; “twice”",
        change=substitute(
            rf"(have|has|I've|we've|they've|you've) {_NO_LIGHT}({_RESULT}|{_UNDONE}) ({_OBJECT})",
            r"\1 \3 \2",
            after=_OBJECT_ENDS,
            unless=r"[^.!?\n]*\b(?:times|twice|before)\b",
            unless_before=r"(?:'d|\b(?:would|could|should|might|must|will|to|not|times? [a-z]+)) ",
        ),
        examples=(
            ("I have finished the book.", "I have the book finished."),
            ("We've eaten the cake", "We've the cake eaten"),
            ("They have closed the bar.", "They have the bar closed."),
        ),
        feature=97,
    ),
    "after-perfect": Rewrite(
        about="after for the recent past: I am after eating",
        skips="no pronoun with have, “just” and a participle, or “just” and bought, finished …",
        change=substitute(
            rf"(?!you just)(I|we|they|you|he|she)(?:('ve| have| has| had|'s(?= just {_MOVED})) just"
            rf" (?!gone)({_PARTICIPLE})| just ({_ENDED}))",
            _after,
            unless_before=r"\b(?:if|when|where|until)(?: [a-z]+){0,2} ",
        ),
        examples=(
            ("I just bought a car.", "I am after buying a car."),
            ("We've just eaten", "We are after eating"),
            ("She has just left.", "She is after leaving."),
        ),
        feature=98,
    ),
    "past-for-perfect": Rewrite(
        about="the simple past for the perfect: I never saw it",
        skips="no I, we, they or you with have, a participle and never, already, yet, before",
        change=chain(
            substitute(
                rf"(I|we|they|you)(?:'ve| have) ((?:never|already|just|ever) )({_PARTICIPLE})",
                _past_for_perfect,
                unless=" to [a-z]+",
            ),
            substitute(
                rf"(I|we|they|you)(?:'ve| have) (also )?({_PARTICIPLE})",
                _past_for_perfect,
                after=rf"(?: (?!to\b)[\w']+){{0,6}} {_TILL_NOW}\s*(?:[.,!?;)]|$)",
            ),
        ),
        examples=(
            ("I have never seen it.", "I never saw it."),
            ("We've eaten here before", "We ate here before"),
            ("They have already taken our table.", "They already took our table."),
        ),
        feature=99,
    ),
    "perfect-for-past": Rewrite(
        about="the perfect with a past time: I have been there yesterday",
        skips="no pronoun and listed past form before yesterday, last …, or … ago in the clause",
        change=substitute(
            rf"(I|we|they|he|she) ({one_of(set(BY_PAST) - {'was', 'had', 'did'})})"
            rf"((?: [\w']+){{0,8}} (?:yesterday|last (?:night|week|month|year|time)|ago))",
            _perfect_for_past,
        ),
        examples=(
            ("We ate there last night.", "We have eaten there last night."),
            ("I saw him yesterday", "I have seen him yesterday"),
            ("He left two weeks ago.", "He has left two weeks ago."),
        ),
        feature=100,
    ),
    "present-for-perfect": Rewrite(
        about="the present for what still goes on: we are coming here for years",
        skips="no “have been” with for or since in the clause; “it has been a year since”",
        change=substitute(
            rf"(I|we|they|you|he|she|it{_NO_SPAN})(?:'ve| have| has|'s) been"
            rf"((?: [\w']+){{0,6}} {_SPAN})",
            lambda found: f"{found[1]} {_be(found[1])}{found[2]}",
        ),
        examples=(
            ("We have been coming here for years.", "We are coming here for years."),
            ("I've been here since noon", "I am here since noon"),
            ("It has been open for a month.", "It is open for a month."),
        ),
        feature=101,
    ),
    "be-perfect": Rewrite(
        about="be for have with verbs of motion: they are gone home",
        skips="no pronoun with have before gone, come, arrived, left, finished, become …",
        change=substitute(
            rf"(I|we|they|you|he|she|it)(?:'ve| have| has) ((?:now |just |already )?{_MOVED})",
            lambda found: f"{found[1]} {_be(found[1])} {found[2]}",
        ),
        examples=(
            ("They have gone home.", "They are gone home."),
            ("I've finished", "I am finished"),
            ("It has become a joke.", "It is become a joke."),
        ),
        feature=102,
    ),
    "already": Rewrite(
        about="already as the mark of the perfect: they closed already",
        skips="no short clause of a pronoun, have and a participle of a result; two clauses",
        change=substitute(
            rf"{_CLAUSE_START}(I|we|they|you|he|she|it)(?:'ve| have| has)( already| just)? "
            rf"(?!made)({_RESULT}|seen|started)((?: {_NO_CLAUSE}[\w']+){{0,6}}){_CLAUSE_END}",
            lambda found: f"{found[1]} {BY_PARTICIPLE[found[3].lower()].past}{found[4]} already",
        ),
        examples=(
            ("They have closed.", "They closed already."),
            ("We've paid the bill", "We paid the bill already"),
            ("I have seen this film, thanks.", "I saw this film already, thanks."),
        ),
        feature=109,
    ),
}
