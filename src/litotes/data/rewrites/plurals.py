"""Number: plurals made regular, added or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from litotes.data.rewrites.matching import is_name, one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import BY_PAST, VERBS
from litotes.data.rewrites.words import ADJECTIVES, FUNCTION_WORDS, NOUNS, PEOPLE, THINGS, listed

_MASS = listed(
    "advice baggage clothing cutlery equipment evidence feedback furniture homework information"
    " jewellery luggage machinery merchandise research software staff stuff"
)
_VES = {
    "wives": "wifes",
    "knives": "knifes",
    "shelves": "shelfs",
    "loaves": "loafs",
    "halves": "halfs",
    "thieves": "thiefs",
    "wolves": "wolfs",
    "scarves": "scarfs",
    "calves": "calfs",
}
_NUMBERS = (
    r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty"
    "|fifty|hundred|several|few)"
)
_MEASURES = {
    "years": "year",
    "months": "month",
    "weeks": "week",
    "miles": "mile",
    "pounds": "pound",
    "inches": "inch",
    "feet": "foot",
    "dollars": "dollar",
    "bucks": "buck",
    "stars": "star",
    "minutes": "minute",
    "hours": "hour",
}
_PEOPLE = {many: one for one, many in PEOPLE.items()}
_THINGS = {many: one for one, many in THINGS.items()}
_FOLLOWS = rf"\s*(?:[.,!?;:)]|$)|\s(?:{one_of(FUNCTION_WORDS)})\b"
_IRREGULAR = ("people", "children", "men", "women", "feet", "teeth", "sheep", "mice")
_BEFORE_FREE = FUNCTION_WORDS | ADJECTIVES | set(BY_PAST) | (set(VERBS) - set(NOUNS))
_IN_COMPOUND = (
    rf" ?['’]s?\b| (?:{one_of([*NOUNS.values(), *NOUNS])}|[a-z]+(?:ers|ors|ists)|police|staff"
    "|skills?|safety|clothes|clothing|rights|power|cricket|football|folk)\\b"
)


def _singular(table: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    """The singular of a plural that stands free: neither in a name nor in a compound."""

    def new(found: re.Match[str]) -> str:
        before = re.search(r"([\w'’-]+) $", found.string[: found.start()])
        is_free = (
            before is None
            or before[1].lower().replace("’", "'") in _BEFORE_FREE
            or re.fullmatch(_NUMBERS, before[1].lower()) is not None
        )
        return table[found[0].lower()] if is_free and not is_name(found) else found[0]

    return new


PLURALS = {
    "childrens": Rewrite(
        about="-s on irregular plurals: childrens, peoples",
        skips="no people, children, men, women, feet, teeth, sheep or mice; “children’s”",
        change=substitute(
            one_of(_IRREGULAR),
            lambda found: found[0] if is_name(found) else f"{found[0].lower()}s",
            unless=_IN_COMPOUND,
            unless_before=r"\b(?:an?|one|each|every) ",
        ),
        examples=(
            ("The children loved it.", "The childrens loved it."),
            ("Too many people", "Too many peoples"),
            ("My feet hurt.", "My feets hurt."),
        ),
        feature=48,
    ),
    "knifes": Rewrite(
        about="-fs for -ves: knifes, shelfs, lifes",
        skips="no knives, wives, shelves, loaves, halves …, and no “our lives”",
        change=swap(
            _VES | {f"{whose} lives": f"{whose} lifes" for whose in ("my", "our", "their", "your")}
        ),
        examples=(
            ("The knives were dirty.", "The knifes were dirty."),
            ("It changed our lives", "It changed our lifes"),
            ("Empty shelves everywhere.", "Empty shelfs everywhere."),
        ),
        feature=49,
    ),
    "mass-plural": Rewrite(
        about="a plural of a mass noun: staffs, furnitures, advices",
        skips="no staff, stuff, furniture, equipment, advice, feedback … at the end of its phrase",
        change=substitute(rf"({one_of(_MASS)})", r"\1s", after=_FOLLOWS),
        examples=(
            ("The staff are friendly.", "The staffs are friendly."),
            ("Old furniture, no service", "Old furnitures, no service"),
            ("Thanks for the advice!", "Thanks for the advices!"),
        ),
        feature=55,
    ),
    "five-year": Rewrite(
        about="no plural after a number: five year, ten pound",
        skips="no years, weeks, miles, pounds, dollars … straight after a number",
        change=substitute(
            rf"({_NUMBERS}) ({one_of(_MEASURES)})",
            lambda found: f"{found[1]} {_MEASURES[found[2].lower()]}",
        ),
        examples=(
            ("We waited five years.", "We waited five year."),
            ("It cost 20 pounds", "It cost 20 pound"),
            ("Ten minutes to sit down.", "Ten minute to sit down."),
        ),
        feature=56,
    ),
    "people-unmarked": Rewrite(
        about="no plural of nouns for people: all my friend",
        skips="none of the listed plurals for people; in a name or a compound",
        change=substitute(rf"(?<!you ){one_of(_PEOPLE)}", _singular(_PEOPLE)),
        examples=(
            ("My friends are happy.", "My friend are happy."),
            ("Two waiters came", "Two waiter came"),
            ("Kids love it.", "Kid love it."),
        ),
        feature=57,
    ),
    "things-unmarked": Rewrite(
        about="no plural of nouns for things: many dish to choose",
        skips="none of the listed plurals for things; in a name or a compound",
        change=substitute(one_of(_THINGS), _singular(_THINGS)),
        examples=(
            ("The dishes were cold.", "The dish were cold."),
            ("Great prices and big portions", "Great price and big portion"),
            ("Two beers, please.", "Two beer, please."),
        ),
        feature=58,
    ),
}
