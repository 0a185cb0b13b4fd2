"""Spelling: British and American, and ways of writing what is heard."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import BY_ING, BY_PARTICIPLE
from litotes.data.rewrites.words import listed

_OUR = listed("behavio colo favo flavo harbo hono humo labo neighbo rumo savo vapo")
_ISE = listed("apolog author critic emphas priorit real recogn special summar organ util visual")
_PAIRS = {
    "center": "centre", "theater": "theatre", "liter": "litre",
    "fiber": "fibre", "defense": "defence", "offense": "offence", "gray": "grey",
    "jewelry": "jewellery", "pajamas": "pyjamas", "plow": "plough",
    "traveler": "traveller", "traveling": "travelling", "traveled": "travelled",
    "canceled": "cancelled", "canceling": "cancelling", "mom": "mum", "aluminum": "aluminium",
    "cozy": "cosy", "donut": "doughnut", "specialty": "speciality",
    "skeptical": "sceptical", "favorite": "favourite", "favorites": "favourites",
}  # fmt: skip
_SPOKEN = {
    "you": "u", "your": "ur", "you're": "ur", "are": "r", "please": "pls", "because": "cos",
    "though": "tho", "people": "ppl", "thanks": "thx", "to be honest": "tbh", "tonight": "tonite",
    "and": "n", "probably": "prolly",
}  # fmt: skip


_HEARD = {
    "want to": "wanna", "going to": "gonna", "don't know": "dunno", "got to": "gotta",
    "kind of": "kinda", "sort of": "sorta", "could have": "coulda", "should have": "shoulda",
    "would have": "woulda", "give me": "gimme", "let me": "lemme",
}  # fmt: skip


def _british() -> dict[str, str]:
    """American spellings, and the British."""
    found = dict(_PAIRS)
    for stem in _OUR:
        for ending in ("", "s", "ed", "ing", "ful", "able", "less", "ite"):
            if (stem, ending) not in (("vapo", "ite"), ("rumo", "ful"), ("rumo", "less")):
                found[f"{stem}r{ending}"] = f"{stem}ur{ending}"
    for stem in _ISE:
        for ending in ("e", "es", "ed", "ing"):
            found[f"{stem}iz{ending}"] = f"{stem}is{ending}"
    return found


_BRITISH = _british()
_AMERICAN = {british: american for american, british in _BRITISH.items()}

SPELLING = {
    "british-spelling": Rewrite(
        about="American spellings in British: colour, organise, centre",
        skips="none of the listed American spellings; labor, which may be a party",
        change=substitute(
            rf"(?!labor\b){one_of(_BRITISH)}", lambda found: _BRITISH[found[0].lower()]
        ),
        examples=(
            ("My favorite color.", "My favourite colour."),
            ("The CENTER of town", "The CENTRE of town"),
            ("They apologized, realizing it.", "They apologised, realising it."),
        ),
    ),
    "american-spelling": Rewrite(
        about="British spellings in American: color, organize, center",
        skips="none of the listed British spellings; labour, which may be a party",
        change=substitute(
            rf"(?!labour\b){one_of(_AMERICAN)}", lambda found: _AMERICAN[found[0].lower()]
        ),
        examples=(
            ("My favourite colour.", "My favorite color."),
            ("The CENTRE of town", "The CENTER of town"),
            ("They apologised, realising it.", "They apologized, realizing it."),
        ),
    ),
    "g-dropping": Rewrite(
        about="-in’ for -ing: goin’, waitin’",
        skips="no listed verb in -ing",
        change=substitute(rf"({one_of(word[:-1] for word in BY_ING)})g", r"\1'"),
        examples=(
            ("We were waiting.", "We were waitin'."),
            ("Going back soon", "Goin' back soon"),
            ("Keep trying!", "Keep tryin'!"),
        ),
    ),
    "text-speak": Rewrite(
        about="short spellings of messages: u, ur, pls, cos",
        skips="no you, your, are, please, because, though, people, thanks …",
        change=swap(_SPOKEN),
        examples=(
            ("You are great.", "U r great."),
            ("Thanks for your help", "Thx for ur help"),
            ("I left because people shouted.", "I left cos ppl shouted."),
        ),
    ),
    "eye-dialect": Rewrite(
        about="wanna, gonna, dunno, coulda: what is heard, written",
        skips="no want to, going to, don’t know, have to, kind of, could have …",
        change=substitute(
            r"want to|going to(?= [a-z]+\b)(?! (?:the|a|my|our|town|bed|work))|don't know"
            r"|(?<='ve )got to|(?<=have )got to|kind of|sort of"
            rf"|(?:could|should|would) have(?= (?:\w+ed|{one_of(BY_PARTICIPLE)})\b)|give me|let me",
            lambda found: _HEARD[re.sub("[’]", "'", found[0].lower())],
        ),
        examples=(
            ("I want to go.", "I wanna go."),
            ("You should have asked", "You shoulda asked"),
            ("I don't know, kind of bland.", "I dunno, kinda bland."),
        ),
    ),
}
