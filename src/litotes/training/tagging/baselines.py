"""What needs no model: the lines that scores of words are read against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from litotes.data.words.corpus import WordExample


def most_frequent_tags(
    train: Sequence[WordExample], test: Sequence[WordExample]
) -> list[list[str]]:
    """Each word's commonest tag in training; of words not seen there, the commonest of those that
    occur once, which new words resemble. Jurafsky and Martin, "Speech and Language Processing",
    §17.2. Case counts where the word was seen in it.
    """
    exact: dict[str, Counter[str]] = {}
    folded: dict[str, Counter[str]] = {}
    for one in train:
        for word, tag in zip(one.words, one.tags or (), strict=True):
            exact.setdefault(word, Counter())[tag] += 1
            folded.setdefault(word.lower(), Counter())[tag] += 1
    rare: Counter[str] = Counter()
    for counts in exact.values():
        if counts.total() == 1:
            rare.update(counts)
    unseen = rare or sum(exact.values(), Counter())
    default = _commonest(unseen)
    answers = []
    for one in test:
        found = [exact.get(word) or folded.get(word.lower()) for word in one.words]
        answers.append([default if counts is None else _commonest(counts) for counts in found])
    return answers


def _commonest(counts: Counter[str]) -> str:
    """Of equals the first in the alphabet: the same on every machine."""
    return min(counts, key=lambda tag: (-counts[tag], tag))
