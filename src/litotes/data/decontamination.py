"""Training texts that are also the texts of a later test, in whatever spelling, are left out.

Corpora of different names often draw on the same reviews or posts: of the 872 development sentences
of SST-2, 737 are among VADER's film reviews, written with other quotes, blanks and capitals. A
score on them says nothing about a model that has read them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.near_duplicates import near_duplicates


def remove_texts_of(corpus: Corpus, tests: Sequence[Corpus]) -> tuple[Corpus, int]:
    """The corpus less the training texts that are, exactly or nearly, in a test or valid split of
    `tests`; and how many those were.
    """
    tested = [
        _spelt_plainly(example) for test in tests for example in test if example.split != "train"
    ]
    training = [place for place, example in enumerate(corpus) if example.split == "train"]
    plain = [_spelt_plainly(corpus.examples[place]) for place in training]
    letters = {text.replace(" ", "") for text in tested} - {""}
    avoided = {
        place
        for place, text in zip(training, plain, strict=True)
        if text.replace(" ", "") in letters
    }
    found = near_duplicates([*plain, *tested], first=len(plain))
    if not found.is_complete:  # what was not looked at would be trained on
        raise UserError(
            f"{corpus.name} has too many texts that resemble those to avoid. Take repeated texts"
            " out, or avoid fewer tests."
        )
    for one, other in found.pairs:
        if one < len(plain) <= other:
            avoided.add(training[one])
    kept = tuple(example for place, example in enumerate(corpus) if place not in avoided)
    return replace(corpus, examples=kept), len(avoided)


def _spelt_plainly(example: Example) -> str:
    """Words in lower case, nothing else: `it 's` and `It’s` are the same."""
    whole = example.text if example.pair is None else f"{example.text} {example.pair}"
    return " ".join(re.findall(r"[^\W_]+", whole.casefold()))
