"""Which slices there are to look at, and which texts each of them has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litotes.core.values import Example
from litotes.data.corpus import ColumnNames
from litotes.data.rewrites.signs import signs_of

FEWEST = 20
"""Texts that a slice has in each half, and that are left outside of it."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_QUARTERS = (0.25, 0.5, 0.75)
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Candidate:
    """A slice: kind is word, length, variety, source, cell or feature, own (text,) its texts."""

    kind: str
    name: str
    own: Bools


def find_candidates(examples: Sequence[Example], searched: Bools) -> list[Candidate]:
    """All slices with enough texts inside and outside, in both halves.

    searched (text,): the half that is searched; the limits of lengths are its quartiles. How many
    texts a slice has says nothing about mistakes, so both halves may be asked.
    """
    found = []
    for candidate in _all_candidates(examples, searched):
        sizes = [int((candidate.own & half).sum()) for half in (searched, ~searched)]
        outside = [int((~candidate.own & half).sum()) for half in (searched, ~searched)]
        if min(*sizes, *outside) >= FEWEST:
            found.append(candidate)
    return found


def _all_candidates(examples: Sequence[Example], searched: Bools) -> Iterator[Candidate]:
    yield from _by_names("word", examples, words_of)
    yield from _by_length(examples, searched)
    yield from _by_names("feature", examples, lambda example: signs_of(_whole(example)))
    yield from _by_names("variety", examples, lambda example: _some(example.variety))
    yield from _by_names("source", examples, lambda example: _some(example.source))
    n_varieties = len({example.variety for example in examples})
    n_sources = len({example.source for example in examples})
    if min(n_varieties, n_sources) > 1:  # otherwise cells are varieties or sources
        names = ColumnNames(examples, "cell")
        yield from _by_names("cell", examples, lambda example: [names.name(example)])


def words_of(example: Example) -> set[str]:
    """The words of a text in small letters."""
    return {word.casefold().replace("’", "'") for word in _WORD.findall(_whole(example))}


def _by_names(
    kind: str, examples: Sequence[Example], names_of: Callable[[Example], Sequence[str] | set[str]]
) -> Iterator[Candidate]:
    places: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        for name in names_of(example):
            places.setdefault(name, []).append(place)
    for name in sorted(places):
        if len(places[name]) >= 2 * FEWEST:
            own = np.zeros(len(examples), dtype=np.bool_)
            own[places[name]] = True
            yield Candidate(kind, name, own)


def _by_length(examples: Sequence[Example], searched: Bools) -> Iterator[Candidate]:
    """Quarters by the number of words."""
    lengths = np.array([len(_whole(example).split()) for example in examples])
    if not searched.any():
        return
    bounds = np.quantile(lengths[searched], _QUARTERS).astype(np.int64).tolist()
    low = 0
    for high in (*bounds, int(lengths.max())):
        own = (lengths >= low) & (lengths <= high)
        if own.any() and low <= high:
            yield Candidate("length", f"{low} to {high} words", own)
        low = high + 1


def _whole(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} {example.pair}"


def _some(name: str | None) -> list[str]:
    return [] if name is None else [name]
