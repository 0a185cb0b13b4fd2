"""Pronouns: other forms, other cases, and pronouns left out."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import SENTENCE, chain, one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import BY_ING, BY_PAST
from litotes.data.rewrites.words import ADJECTIVES, PEOPLE, PLURALS

_KIN = one_of([*PEOPLE, "husband", "wife", "partner", "family", "girlfriend", "boyfriend", "uncle"])
_NAME = "(?!(?:You|He|She|They|It|So|But|And|Haha|Lol|No|Ok|Yes|Yeah)\\b)(?-i:[A-Z])[a-z]+"
_JOINT = r" (?!(?:was|am|have to|to|at|in|on|with|for|from|into|about|as|by)\b)[a-z]"
"""What follows a subject of two: no verb of the first person singular, no preposition."""
_GOVERNS = (
    r"\b(?:about|and|at|between|by|for|from|gave|give|let|made|of|on|served|to|told|treated|with) "
)
"""What comes before an object of two."""
_GIVING = one_of("ask bring buy call email give gave pass sell send sent show showed text")
_TAKEN = one_of(
    "ate avoid bought enjoyed hate hated liked love loved need ordered recommend recommended saw"
    " skip tried try use used visit visited want wanted watched"
)
_SAID = one_of({*BY_PAST, "am", "was", "have", "had", "will", "would", "love", "can", "could"})
_CLAUSE = (
    r"(?:I|you|he|she|we|they|there|people|everyone|nobody|it)(?:'\w+| [a-z]+)|that [a-z]+ [a-z]+"
    r"|(?:the|this|my|these|their) (?:[a-z]+ ){1,2}(?:is|are|was|were|has|have|will|would)\b"
)
_SPAN = (
    r"(?:seconds?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|ages|forever|a while"
    r"|some time)"
)
_EMPTY = (
    rf"(?:rain(?:s|ed)\b|(?:seem(?:s|ed)|look(?:s|ed)|feels|felt)(?: like| as if| as though)"
    rf" (?:{_CLAUSE})|seem(?:s|ed) (?:{_CLAUSE})"
    rf"|(?:takes|took) (?:(?:me|us|you|them|him|her) )?(?:[\w-]+ ){{0,3}}{_SPAN}\b)"
)
_EXTRAPOSED = (
    r" (?:so |really |very |also )?(?:amazing|clear|disappointing|good|great|important|lovely|nice"
    r"|obvious|sad|surprising|wonderful|a shame|a pity) "
    r"(?:that [a-z]+ [a-z]+|to (?:be|find|get|have|hear|know|see))\b"
)
_EXPLETIVE = (
    rf"(?:to|that|when|how|if|who|which|what|why|where|like|as|time|been|raining|snowing|late|early"
    rf"|birthday|(?:hot|cold|warm) (?:in|outside)|because|worth|(?:un)?likely|(?:im)?possible"
    rf"|[a-z]+day|{one_of(BY_ING)})"
)
"""A sentence with one of these may have an empty it: it is hard to …, it is like he …"""
_REFERS = rf" (?=[a-z])(?:(?!\b{_EXPLETIVE}\b)[^.!?\n])*(?:[.!?\n]|$)"
_ADJECTIVE = rf"(?:{one_of(ADJECTIVES)} )?"


def _capital(found: re.Match[str]) -> str:
    return found[1].upper()


def _me_first(found: re.Match[str]) -> str:
    return f"me and {found[1][0].lower()}{found[1][1:]}"


PRONOUNS = {
    "me-and": Rewrite(
        about="me instead of I in a joint subject: me and my wife went",
        skips="no “X and I” where X is a name at the start or a possessive with a word for people",
        change=chain(
            substitute(rf"{SENTENCE}({_NAME}) and I", r"Me and \1", after=_JOINT),
            substitute(
                rf"(?<=Then |then |when )({_NAME}) and I", r"me and \1", after=_JOINT, case=False
            ),
            substitute(
                rf"((?:my|our|his|her) {_KIN}) and I",
                _me_first,
                after=_JOINT,
                unless_before=_GOVERNS,
            ),
        ),
        examples=(
            ("My wife and I went there.", "Me and my wife went there."),
            ("Then Tom and I left", "Then me and Tom left"),
            ("Last week my sister and I ate here.", "Last week me and my sister ate here."),
        ),
        feature=7,
    ),
    "myself-and": Rewrite(
        about="myself instead of I in a joint subject: my wife and myself went",
        skips="no “X and I” where X is a name at the start or a possessive with a word for people",
        change=chain(
            substitute(
                rf"(?:{SENTENCE}|(?<=Then |then |when ))({_NAME}) and I",
                r"\1 and myself",
                after=_JOINT,
            ),
            substitute(
                rf"((?:my|our|his|her) {_KIN}) and I",
                r"\1 and myself",
                after=_JOINT,
                unless_before=_GOVERNS,
            ),
        ),
        examples=(
            ("My wife and I went there.", "My wife and myself went there."),
            ("Then Tom and I left", "Then Tom and myself left"),
            ("Our friend and I shared it.", "Our friend and myself shared it."),
        ),
        feature=8,
    ),
    "personal-dative": Rewrite(
        about="a pronoun for whom something is got: I got me a new car",
        skips="no “I got, bought, ordered, found, need … a”",
        change=substitute(
            rf"(I|we) ((?:just |finally )?{one_of('got bought ordered found grabbed need want')}) "
            r"(?=(?:an?|some) )",
            lambda found: f"{found[1]} {found[2]} {'me' if found[1] in 'Ii' else 'us'} ",
            after=".",
        ),
        examples=(
            ("I got a new phone.", "I got me a new phone."),
            ("We ordered some chips", "We ordered us some chips"),
            ("Today I finally bought a car.", "Today I finally bought me a car."),
        ),
        feature=9,
    ),
    "hisself": Rewrite(
        about="regular reflexives: hisself, theirselves",
        skips="no himself or themselves",
        change=swap({"himself": "hisself", "themselves": "theirselves"}),
        examples=(
            ("He made it himself.", "He made it hisself."),
            ("They ruined it themselves", "They ruined it theirselves"),
            ("The rooms themselves are fine.", "The rooms theirselves are fine."),
        ),
        feature=11,
    ),
    "meself": Rewrite(
        about="meself for myself",
        skips="no myself",
        change=swap({"myself": "meself"}),
        examples=(
            ("I made it myself.", "I made it meself."),
            ("Myself and the kids loved it", "Meself and the kids loved it"),
            ("I kept it to myself!", "I kept it to meself!"),
        ),
        feature=12,
    ),
    "ourself": Rewrite(
        about="one reflexive for one and many: ourself, themself",
        skips="no ourselves, yourselves or themselves",
        change=swap({"ourselves": "ourself", "yourselves": "yourself", "themselves": "themself"}),
        examples=(
            ("We enjoyed ourselves.", "We enjoyed ourself."),
            ("Help yourselves", "Help yourself"),
            ("They did it themselves.", "They did it themself."),
        ),
        feature=14,
    ),
    "own-self": Rewrite(
        about="own in a reflexive: my own self",
        skips="no myself, yourself, himself, herself or ourselves",
        change=swap(
            {
                "myself": "my own self",
                "yourself": "your own self",
                "himself": "his own self",
                "herself": "her own self",
                "ourselves": "our own selves",
            }
        ),
        examples=(
            ("I made it myself.", "I made it my own self."),
            ("See for yourself!", "See for your own self!"),
            ("She cooked it herself", "She cooked it her own self"),
        ),
        feature=16,
    ),
    "me-possessive": Rewrite(
        about="me for my: me brother",
        skips="no “my” before a word in small letters; “my god” and “oh my”",
        change=substitute(
            r"(?<!oh )my", "me", after=r" (?-i:[a-z])", unless=" (?:god|goodness|gosh)"
        ),
        examples=(
            ("My brother hated it.", "Me brother hated it."),
            ("I lost my bike", "I lost me bike"),
            ("My mum and my dad came.", "Me mum and me dad came."),
        ),
        feature=26,
    ),
    "us-singular": Rewrite(
        about="us for me after a verb of giving: show us the menu",
        skips="no “me” straight after give, show, send, bring, ask, call …; Me in a name",
        change=substitute(rf"({_GIVING}) (?-i:me)", r"\1 us", unless=" (?:and|or)"),
        examples=(
            ("They gave me a discount.", "They gave us a discount."),
            ("Call me tomorrow", "Call us tomorrow"),
            ("Show me the menu!", "Show us the menu!"),
        ),
        feature=29,
    ),
    "youse": Rewrite(
        about="youse for several people: youse are great",
        skips="no “you guys”, “you all”, “you lot”, “all of you”; all that someone tells you",
        change=chain(
            substitute("you guys|you lot|you people|you folks|all of you", "youse"),
            substitute(
                "you all",
                "youse",
                unless=" (?:the|over|day|about|kinds?|sorts?|of|you|that|this|these|those|your|in)",
                unless_before=r"\b(?:told|gave|(?:tell|give|show|offer|get|buy|make)s?) ",
            ),
        ),
        examples=(
            ("You guys are great.", "Youse are great."),
            ("Thanks to all of you!", "Thanks to youse!"),
            ("I hope you all come", "I hope youse come"),
        ),
        feature=34,
    ),
    "ye": Rewrite(
        about="ye for you",
        skips="no “you” as a word of its own",
        change=substitute("you", "ye", unless=" (?:guys|all|lot|people)"),
        examples=(
            ("You get what you pay for.", "Ye get what ye pay for."),
            ("Thank you!", "Thank ye!"),
            ("I told you so", "I told ye so"),
        ),
        feature=35,
    ),
    "object-drop": Rewrite(
        about="an object pronoun left out: loved, will come again",
        skips="no “it” or “them” after a listed verb at the end of a clause; “them, all of them”",
        change=substitute(
            rf"({_TAKEN}) (?:it|them)",
            r"\1",
            after=r"\s*(?:[.,!;]|$)",
            unless=r"\s*,\s*(?:all|both|each|every|some|most|none|especially|the|an?|my|our)\b",
        ),
        examples=(
            ("The food is great, I love it.", "The food is great, I love."),
            ("We tried it, and left", "We tried, and left"),
            ("Skip it!", "Skip!"),
        ),
        feature=42,
    ),
    "subject-drop": Rewrite(
        about="a subject pronoun left out: went there yesterday",
        skips="no sentence that begins with “I” or “we” and a listed verb",
        change=substitute(rf"{SENTENCE}(?:I|We) (?={_SAID} )([a-z])", _capital, after="."),
        examples=(
            ("I went there yesterday.", "Went there yesterday."),
            ("Bad. We waited an hour.", "Bad. Waited an hour."),
            ("I would go again", "Would go again"),
        ),
        feature=43,
    ),
    "dummy-drop": Rewrite(
        about="an empty it left out: takes an hour to get there",
        skips="no sentence of it seems, took, rained, is good to …; it for a thing",
        change=chain(
            substitute(rf"{SENTENCE}It (?={_EMPTY})([a-z])", _capital, after="."),
            substitute(rf"{SENTENCE}It (is|was)", lambda found: found[1], after=_EXTRAPOSED),
            substitute(rf"{SENTENCE}It's", "Is", after=_EXTRAPOSED),
        ),
        examples=(
            ("It took an hour.", "Took an hour."),
            ("Sad. It seems they closed.", "Sad. Seems they closed."),
            ("It rained all day", "Rained all day"),
        ),
        feature=44,
    ),
    "it-is-drop": Rewrite(
        about="it left out of it is: is very nice food",
        skips="no sentence that begins with “it is”, “it’s” or “it was”; “it is hard to …”",
        change=chain(
            substitute(rf"{SENTENCE}It (is|was)", lambda found: found[1], after=_REFERS),
            substitute(rf"{SENTENCE}It's", "Is", after=_REFERS),
        ),
        examples=(
            ("It is very nice food.", "Is very nice food."),
            ("Wow. It's so good.", "Wow. Is so good."),
            ("It was too loud", "Was too loud"),
        ),
        feature=46,
    ),
    "them-those": Rewrite(
        about="them instead of those: in them days",
        skips="no “those” before people, days or a listed plural",
        change=substitute(
            "those", "them", after=rf" {_ADJECTIVE}(?:{one_of(PLURALS)}|people|days|kids|ones)\b"
        ),
        examples=(
            ("Those people are rude.", "Them people are rude."),
            ("I miss those days", "I miss them days"),
            ("One of those small shops.", "One of them small shops."),
        ),
        feature=68,
    ),
    "this-here": Rewrite(
        about="this here: this here place",
        skips="no “this” or “that” before a listed noun",
        change=chain(
            substitute(
                "this", "this here", after=rf" {_ADJECTIVE}(?:{one_of(PLURALS.values())})\b"
            ),
            substitute("these", "these here", after=rf" {_ADJECTIVE}(?:{one_of(PLURALS)})\b"),
        ),
        examples=(
            ("This place is great.", "This here place is great."),
            ("I love this small cafe", "I love this here small cafe"),
            ("These prices are mad.", "These here prices are mad."),
        ),
        feature=70,
    ),
}
