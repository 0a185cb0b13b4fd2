"""Thirty sentences a person would try, what that person would say of them, and what the built-in
models answer: a table for docs/reference/builtin.md.

    python -m reproduction.thirty_sentences [MODEL …]

A model is a name or a folder; by default the first edition is compared with the current one. The
sentences were written before any model was asked.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from litotes import Predictor


@dataclass(frozen=True)
class Tried:
    """sentiment: what is meant; None: there is none."""

    text: str
    kind: str
    sentiment: str | None
    is_sarcastic: bool = False


TRIED = (
    Tried("The staff were lovely and the soup was the best I've had.", "praise", "positive"),
    Tried("This phone is brilliant.", "praise", "positive"),
    Tried("I could eat this cake every day for the rest of my life.", "praise", "positive"),
    Tried("The room was dirty and nobody answered the phone.", "complaint", "negative"),
    Tried("Waste of money.", "complaint", "negative"),
    Tried("Oh great, another delayed train.", "sarcasm", "negative", True),
    Tried("What a surprise, the lift is broken again.", "sarcasm", "negative", True),
    Tried("I just adore being on hold for two hours.", "sarcasm", "negative", True),
    Tried("Nice of the plumber to turn up three days late.", "sarcasm", "negative", True),
    Tried(
        "Love paying eight pounds for a sandwich that tastes of the fridge.",
        "sarcasm",
        "negative",
        True,
    ),
    Tried("A masterclass in how to lose a three-goal lead.", "sarcasm", "negative", True),
    Tried(
        "Terrible news, we won the raffle and have to choose a holiday.",
        "sarcasm",
        "positive",
        True,
    ),
    Tried("Could the queue be any slower?", "question", "negative", True),
    Tried("When does the shop open?", "question", None),
    Tried("Sinking was not ideal for the cruise.", "understatement", "negative", True),
    Tried("It was a bit of a mess, to be honest.", "understatement", "negative"),
    Tried("Not bad at all.", "litotes", "positive"),
    Tried("She is no fool.", "litotes", "positive"),
    Tried("I can't say I enjoyed it.", "negation", "negative"),
    Tried("Nothing to complain about.", "negation", "positive"),
    Tried("It isn't good.", "negation", "negative"),
    Tried("The service was pants.", "idiom, UK", "negative"),
    Tried("That gig was the bee's knees.", "idiom, UK", "positive"),
    Tried("Ripper of a day at the beach, mate.", "idiom, AU", "positive"),
    Tried("He's a few sandwiches short of a picnic.", "idiom, AU", "negative"),
    Tried("The film was total paisa vasool.", "idiom, IN", "positive"),
    Tried("Stop eating my head with these calls.", "idiom, IN", "negative"),
    Tried("The room was spotless.", "plain", "positive"),
    Tried("My tea is cold.", "plain", "negative"),
    Tried("The train leaves at nine.", "plain", None),
)

DEFAULT = ["builtin"]
UNSURE = 0.65
"""Under this probability an answer about a text without sentiment is called low enough."""


def main(models: list[str]) -> None:
    texts = [tried.text for tried in TRIED]
    answers = {name: Predictor.load(name).predict(texts) for name in models}
    print(f"| sentence | a person | {' | '.join(f'`{name}`' for name in models)} |")
    print(f"|---|---|{'---|' * len(models)}")
    n_right = dict.fromkeys(models, 0)
    for place, tried in enumerate(TRIED):
        cells = []
        for name in models:
            found = answers[name][place].answers
            is_right = _is_right(tried, found)
            n_right[name] += is_right
            words = f"{found['sentiment'].label} {_share(found['sentiment'])}"
            words += f", {found['sarcasm'].label} {_share(found['sarcasm'])}"
            cells.append(words if is_right else f"**{words}**")
        said = tried.sentiment or "neither"
        said += ", sarcastic" if tried.is_sarcastic else ", literal"
        print(f"| {tried.text} | {said} | {' | '.join(cells)} |")
    print({name: f"{n} of {len(TRIED)} right in both" for name, n in n_right.items()})


def _is_right(tried: Tried, found: object) -> bool:
    sentiment, sarcasm = found["sentiment"], found["sarcasm"]  # type: ignore[index]
    meant = "sarcastic" if tried.is_sarcastic else "literal"
    if tried.sentiment is None:
        return sarcasm.label == meant and max(sentiment.probabilities.values()) < UNSURE
    return sarcasm.label == meant and sentiment.label == tried.sentiment


def _share(answer: object) -> str:
    return f"{100 * max(answer.probabilities.values()):.0f} %"  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(sys.argv[1:] or DEFAULT)
