"""The gold set of parts of speech, and scores against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from litotes.explanation.analyses.parts_of_speech import PartOfSpeech, tag

_LETTERS: dict[str, PartOfSpeech] = {
    "N": "noun",
    "P": "pronoun",
    "V": "verb",
    ".": "punctuation",
    "O": "other",
}


def sentences() -> Iterator[tuple[list[str], list[PartOfSpeech]]]:
    for line in Path(__file__).with_name("parts_of_speech.txt").read_text("utf-8").splitlines():
        if not line.startswith(("#", "==")):
            pairs = [word.rsplit("/", 1) for word in line.split()]
            yield [word for word, _ in pairs], [_LETTERS[letter] for _, letter in pairs]


def confusion(*, small: bool = False) -> Counter[tuple[PartOfSpeech, PartOfSpeech]]:
    """Words by (gold, found); small: as an uncased tokenizer's texts might be typed."""
    counts: Counter[tuple[PartOfSpeech, PartOfSpeech]] = Counter()
    for words, gold in sentences():
        counts.update(
            zip(gold, tag([word.lower() for word in words] if small else words), strict=True)
        )
    return counts
