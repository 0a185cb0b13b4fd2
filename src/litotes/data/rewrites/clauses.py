"""Clauses: relatives, conjunctions, existentials, prepositions."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import SENTENCE, chain, one_of, substitute
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.words import NOUNS, PLURALS

_HEAD = rf"((?:{one_of([*NOUNS, *PLURALS, 'people', 'man', 'woman', 'person', 'one', 'thing'])}))"
_PERSON = (
    rf"({one_of(['people', 'man', 'woman', 'guy', 'guys', 'lady', 'person', 'someone', 'waiter'])})"
)
_NAMED = one_of(
    {*NOUNS, *PLURALS, "bread", "chicken", "curry", "fish", "food", "rice", "soup", "staff", "wine"}
    - {"hour", "idea", "issue", "job", "minute", "month", "morning", "night", "problem", "question"}
    - {"reason", "side", "step", "thing", "things", "visit", "week", "year", "years"}
)
_WHOLE = r" (?:I|we|you|makes?|made|means?|seems|(?:is|was) (?:why|what|when|how|an?|always|so))\b"
"""After these “which” mostly stands for all that was said before."""
_GOES_ON = (
    r" (?:is|are|was|were|has|have|had|will|would|can|could|should|i|we|you|they|he|she|it|makes?"
    r"|made|means?|took|takes|came|comes|seems|lives|gave|got|the|in|at|did|does|only|also)\b"
)
_DAY = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)s?"
_PLACES = one_of(
    "airport bar beach bathroom cafe cinema city doctor gym hospital hotel house park pub"
    " restaurant room shop shops store table toilet"
)
_GIVE = one_of("give gave given send sent show showed bring brought sell sold hand handed")
_CLAUSE = r"[^.!?\n,;]{3,60}"

_SUBJECT = " (?:I|you|he|she|it|we|they|there|the|this|that|these|my|our|your|his|her|their)\\b"


def _but_last(found: re.Match[str]) -> str:
    return f"{found[1].upper()}{found[2]} but"


CLAUSES = {
    "comma-that": Rewrite(
        about="that after a comma: my brother, that lives here",
        skips="no “, who”, no listed noun with “, which”; “which” for a whole clause",
        change=chain(
            substitute(r"(?<=, )(?-i:who)", "that", after=_GOES_ON, unless=" the\\b"),
            substitute(rf"({_NAMED}), which", r"\1, that", after=_GOES_ON, unless=_WHOLE),
        ),
        examples=(
            (
                "The soup, which was cold, cost ten pounds.",
                "The soup, that was cold, cost ten pounds.",
            ),
            ("I met the owner, who is lovely", "I met the owner, that is lovely"),
            ("I love their pizza, which is huge.", "I love their pizza, that is huge."),
        ),
        feature=185,
    ),
    "relative-as": Rewrite(
        about="as for a relative pronoun: the man as served us",
        skips="no listed noun straight before who",
        change=substitute(rf"{_HEAD} who", r"\1 as", after=" [a-z]"),
        examples=(
            ("The man who served us was rude.", "The man as served us was rude."),
            ("People who complain", "People as complain"),
            ("I know the chef who left.", "I know the chef as left."),
        ),
        feature=187,
    ),
    "relative-what": Rewrite(
        about="what for a relative pronoun: the man what served us",
        skips="no listed noun straight before who, which or “that” with a verb or pronoun",
        change=substitute(
            rf"{_HEAD} (?:who|which|that(?= (?:I|we|they|you|he|she|was|were|is|are|had|has)\b))",
            r"\1 what",
            after=" [a-z]",
        ),
        examples=(
            ("The man who served us was rude.", "The man what served us was rude."),
            ("The dish that I ordered", "The dish what I ordered"),
            ("A place which is always busy.", "A place what is always busy."),
        ),
        feature=190,
    ),
    "zero-relative": Rewrite(
        about="no relative pronoun as a subject: the man lives there is nice",
        skips="no people, man, woman, guy, person … straight before who",
        change=substitute(
            rf"{_PERSON} who", r"\1", after=" [a-z]", unless="(?:'s| I| we| they| you)"
        ),
        examples=(
            ("The man who lives there is nice.", "The man lives there is nice."),
            ("There are people who hate it", "There are people hate it"),
            ("I met a guy who works there.", "I met a guy works there."),
        ),
        feature=193,
    ),
    "than-what": Rewrite(
        about="what after than and as: better than what I thought",
        skips="no “than” straight before a pronoun",
        change=substitute(
            r"(?-i:than) (?=(?:I|you|he|she|it|we|they) [a-z])", "than what ", after="."
        ),
        examples=(
            ("It is better than I thought.", "It is better than what I thought."),
            ("Worse than you think", "Worse than what you think"),
            ("They charged more than we agreed.", "They charged more than what we agreed."),
        ),
        feature=204,
    ),
    "got-existential": Rewrite(
        about="got for there is: got many people waiting",
        skips="no sentence that begins with “there is”, “there’s”, “there are”, “there was”",
        change=substitute(
            rf"{SENTENCE}there(?:'s| is| are| was| were)", "got", after=" (?!no\\b|not)"
        ),
        examples=(
            ("There are many people waiting.", "Got many people waiting."),
            ("Nice. There's a pool.", "Nice. Got a pool."),
            ("There was a long queue", "Got a long queue"),
        ),
        feature=205,
    ),
    "final-but": Rewrite(
        about="but at the end of its clause: it was cheap but",
        skips="no sentence that begins with “but” and has no comma, none that ends with “though”",
        change=chain(
            substitute(rf"{SENTENCE}But ([a-z])({_CLAUSE})", _but_last, after=r"[.!]|$"),
            substitute(r"though", "but", after=r"[.!]|$"),
        ),
        examples=(
            ("Small. But it was cheap.", "Small. It was cheap but."),
            ("The food was good though.", "The food was good but."),
            ("Nice place, though!", "Nice place, but!"),
        ),
        feature=211,
    ),
    "but-yet": Rewrite(
        about="two conjunctions side by side: good but yet dear",
        skips="no “but” after a comma",
        change=substitute(r"(?<=, )(but)", r"\1 yet", unless=" yet"),
        examples=(
            ("It is good, but it is dear.", "It is good, but yet it is dear."),
            ("Nice, but not cheap", "Nice, but yet not cheap"),
            ("We asked, but nobody came.", "We asked, but yet nobody came."),
        ),
        feature=214,
    ),
    "although-but": Rewrite(
        about="a conjunction in both clauses: although it is small, but it is good",
        skips="no sentence that begins with Although or Though and has a subject after its comma",
        change=substitute(
            rf"{SENTENCE}((?=(?-i:[A-Z]))(?:although|though|even though)(?!{_CLAUSE} or )"
            rf" {_CLAUSE}),",
            r"\1, but",
            after=_SUBJECT,
        ),
        examples=(
            ("Although it is small, it is good.", "Although it is small, but it is good."),
            ("Even though we booked, we waited", "Even though we booked, but we waited"),
            ("Though old, the rooms are fine.", "Though old, but the rooms are fine."),
        ),
        feature=215,
    ),
    "preposition-drop": Rewrite(
        about="a preposition left out: we went there Tuesday, came out hospital",
        skips="no “on” with a day of the week, and no “to” between going and a listed place",
        change=chain(
            substitute(rf"on (?={_DAY})", "", after="[a-z]"),
            substitute(
                rf"(go|goes|going|went|come|came|back) to (?=(?:the )?{_PLACES}\b)",
                r"\1 ",
                after="[a-z]",
            ),
        ),
        examples=(
            ("We went there on Tuesday.", "We went there Tuesday."),
            ("I went to the pub", "I went the pub"),
            ("Come back to the hotel on Sunday.", "Come back the hotel Sunday."),
        ),
        feature=216,
    ),
    "gave-me-it": Rewrite(
        about="two pronoun objects the other way round: gave me it",
        skips="no “give it to me” and the like",
        change=substitute(rf"({_GIVE}) (it|them) to (me|you|him|her|us|them)", r"\1 \3 \2"),
        examples=(
            ("They gave it to me.", "They gave me it."),
            ("Send it to us", "Send us it"),
            ("He showed them to her.", "He showed her them."),
        ),
        feature=232,
    ),
}
