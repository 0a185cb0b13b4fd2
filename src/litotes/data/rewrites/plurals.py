"""Number: plurals made regular, added or left out."""

from __future__ import annotations

from litotes.data.rewrites.matching import one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.words import FUNCTION_WORDS, PEOPLE, THINGS, listed

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
_FOLLOWS = rf"\s*(?:[.,!?;:)]|$)|\s(?:{one_of(FUNCTION_WORDS)})\b"

PLURALS = {
    "childrens": Rewrite(
        about="-s on irregular plurals: childrens, peoples",
        skips="no people, children, men, women, feet, teeth, sheep or mice",
        change=swap(
            {
                word: f"{word}s"
                for word in ("people", "children", "men", "women", "feet", "teeth", "sheep", "mice")
            }
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
        skips="none of the listed plurals for people",
        change=substitute(rf"(?<!you ){one_of(_PEOPLE)}", lambda found: _PEOPLE[found[0].lower()]),
        examples=(
            ("My friends are happy.", "My friend are happy."),
            ("Two waiters came", "Two waiter came"),
            ("Kids love it.", "Kid love it."),
        ),
        feature=57,
    ),
    "things-unmarked": Rewrite(
        about="no plural of nouns for things: many dish to choose",
        skips="none of the listed plurals for things",
        change=swap({many: one for one, many in THINGS.items()}),
        examples=(
            ("The dishes were cold.", "The dish were cold."),
            ("Great prices and big portions", "Great price and big portion"),
            ("Two beers, please.", "Two beer, please."),
        ),
        feature=58,
    ),
}
