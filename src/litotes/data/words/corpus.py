"""Texts given as words, with a label for every word, a stretch of words to find, or both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from litotes.core.errors import UserError
from litotes.core.text import is_utf8, one_line
from litotes.data.corpus import fraction, text_key

Span = tuple[int, int]
"""The first word of a stretch, and the word after its last."""


@dataclass(frozen=True)
class WordExample:
    """One text as words.

    tags: a label for each word; None: they are not known. has_span: whether it is known which
    stretch is to be found; span: the stretch, None where there is none in this text.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    has_span: bool = False
    span: Span | None = None
    split: str = "train"

    @property
    def text(self) -> str:
        """What a model reads: the words with a blank between them."""
        return " ".join(self.words)

    @property
    def key(self) -> str:
        """What makes two texts the same."""
        return text_key(self.text)


@dataclass(frozen=True)
class WordCorpus:
    """Texts of words for one task.

    labels: those that a word may have, in order. cutting: how a text that is not cut into words
    yet has to be cut to look like these (`cutting.py`). notes: sentences the user should read.
    """

    name: str
    task: str
    labels: tuple[str, ...]
    examples: tuple[WordExample, ...]
    cutting: str = "treebank"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[WordExample]:
        return iter(self.examples)

    def __repr__(self) -> str:
        return one_line(self, name=self.name, task=self.task, n_texts=len(self))

    def only(self, split: str) -> WordCorpus:
        return self._with([one for one in self if one.split == split])

    def splits(self) -> tuple[str, ...]:
        return tuple(sorted({one.split for one in self}))

    def for_kind(self, kind: str) -> WordCorpus:
        """The texts that can teach or test a model of this kind, tagging or span."""
        if kind == "span":
            chosen = [one for one in self if one.has_span]
            wanted = "spans"
        else:
            chosen = [one for one in self if one.tags is not None]
            wanted = "tags"
        if not chosen:
            raise UserError(
                f'{self.name} has no {wanted}: kind = "{kind}" cannot be trained or tested on it.'
            )
        return self._with(chosen)

    def hold_out(self, share: float, *, seed: int) -> tuple[WordCorpus, WordCorpus]:
        """The texts in two parts, the second about `share` of them; equal texts stay together."""
        held = [one for one in self if fraction(f"{seed} {one.key}") < share]
        kept = [one for one in self if fraction(f"{seed} {one.key}") >= share]
        if not kept or not held:
            raise UserError(
                f"{self.name} has too few texts to hold {share:g} of them out: set"
                " training.held_out = 0, or give more texts."
            )
        return self._with(kept), self._with(held)

    def without_leaks(self) -> tuple[WordCorpus, int]:
        """The corpus less training texts that also sit in another split, and how many they are."""
        others = {one.key for one in self if one.split != "train"}
        kept = [one for one in self if one.split != "train" or one.key not in others]
        return self._with(kept), len(self) - len(kept)

    def fingerprint(self) -> str:
        """A hash of all words and answers."""
        digest = sha256()
        for one in self:
            content = (one.words, one.tags, one.has_span, one.span, one.split)
            digest.update(json.dumps(content).encode())
        return digest.hexdigest()

    def _with(self, examples: Sequence[WordExample]) -> WordCorpus:
        return replace(self, examples=tuple(examples))


def labels_of(examples: Sequence[WordExample]) -> tuple[str, ...]:
    """All labels that occur, in the order of the alphabet; O, which marks nothing, comes first."""
    found: Counter[str] = Counter()
    for one in examples:
        found.update(one.tags or ())
    return tuple(sorted(found, key=lambda label: (label != "O", label)))


def check_words(words: Sequence[str], place: str) -> tuple[str, ...]:
    """Words that can be told apart when a blank stands between them."""
    if not words:
        raise UserError(f"{place}: there are no words. Take the text out.")
    for word in words:
        if not word or any(sign.isspace() for sign in word):
            raise UserError(
                f"{place}: {word!r:.60} is not one word. Words must not be empty or hold blanks."
            )
        if not is_utf8(word):
            raise UserError(f"{place}: {word!r:.60} holds half a character. Save it as UTF-8.")
    return tuple(words)


def check_tags(tags: Sequence[str], place: str) -> tuple[str, ...]:
    """Labels that a model may answer: they are printed, and a terminal obeys some characters."""
    for tag in tags:
        if not tag or not tag.isprintable():
            raise UserError(f"{place}: the tag {tag!r:.60} cannot be printed. Name it otherwise.")
    return tuple(tags)
