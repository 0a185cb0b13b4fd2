"""Removes training texts that are also texts of a later test, in whatever spelling.

Corpora of different names often draw on the same reviews or posts: of the 872 development sentences
of SST-2, 737 are among VADER's film reviews, written with other quotes, blanks and capitals. A
score on them says nothing about a model that has read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from litotes.core.errors import UserError
from litotes.data.corpus import Corpus
from litotes.data.keys import leak_key, plain_words
from litotes.data.near_duplicates import near_duplicates


def remove_texts_of(corpus: Corpus, tests: Sequence[Corpus]) -> tuple[Corpus, int]:
    """The corpus without training texts of the tests, and how many those were.

    A training text is removed when it is, exactly or nearly, in a test or valid split of `tests`.
    """
    asked = [example for test in tests for example in test if example.split != "train"]
    tested = list(map(plain_words, asked))
    training = [place for place, example in enumerate(corpus) if example.split == "train"]
    trained = [plain_words(corpus.examples[place]) for place in training]
    found = near_duplicates([*trained, *tested], first=len(trained))
    if not found.is_complete:  # a pair that was not compared would be trained on
        raise UserError(
            f"{corpus.name} has too many texts that resemble those to avoid. Take repeated texts"
            " out, or avoid fewer tests."
        )
    repeated = _same_letters(trained, tested)
    keys = set(map(leak_key, asked))  # texts without any letter, and pairs the other way round
    repeated |= {n for n, at in enumerate(training) if leak_key(corpus.examples[at]) in keys}
    for one, other in found.pairs:
        if one < len(trained) <= other:
            repeated.add(one)
    removed = {training[number] for number in repeated}
    kept = tuple(example for place, example in enumerate(corpus) if place not in removed)
    return replace(corpus, examples=kept), len(removed)


def _same_letters(trained: Sequence[str], tested: Sequence[str]) -> set[int]:
    """The places of training texts with the letters of a test: `can not` and `cannot` are equal."""
    letters = {text.replace(" ", "") for text in tested} - {""}
    return {place for place, text in enumerate(trained) if text.replace(" ", "") in letters}
