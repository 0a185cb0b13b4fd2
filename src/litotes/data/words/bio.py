"""Entities written as tags of words: B-PERSON begins one, I-PERSON goes on, O is none.

Ramshaw and Marcus 1995, arXiv cmp-lg/9505040, §4; as in CoNLL-2003, an I that follows nothing of
its kind begins an entity too, so that every sequence of tags means something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OUTSIDE = "O"


@dataclass(frozen=True)
class Entity:
    """A stretch of words of one kind: from the word `start` to the word before `end`."""

    kind: str
    start: int
    end: int


def is_bio(labels: Sequence[str]) -> bool:
    """Whether these labels write entities: O, and others that begin with B- or I-."""
    others = [label for label in labels if label != OUTSIDE]
    return bool(others) and all(label[:2] in ("B-", "I-") and label[2:] for label in others)


def entities_of(tags: Sequence[str | None]) -> tuple[Entity, ...]:
    """The entities in order. None: a word without an answer, which ends an entity."""
    found: list[Entity] = []
    start, kind = 0, ""
    for place, tag in enumerate([*tags, None]):
        own = "" if tag is None or tag == OUTSIDE else tag[2:]
        goes_on = bool(kind) and own == kind and tag is not None and tag.startswith("I-")
        if goes_on:
            continue
        if kind:
            found.append(Entity(kind, start, place))
        start, kind = place, own
    return tuple(found)
