"""How texts are given to a model: in batches in their order, or sorted by length first.

A model is a function from texts to the logits of all tasks side by side, (text, class); tokenizing
is part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Logits = NDArray[np.float32]
LogitFunction = Callable[[Sequence[str]], Logits]


def split(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Parts of so many items, in their order; the last may be smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def in_batches(logits_of: LogitFunction, size: int) -> LogitFunction:
    """So many at a time, in their order."""

    def batch_and_answer(texts: Sequence[str]) -> Logits:
        return np.concatenate([logits_of(batch) for batch in split(texts, size)])

    return batch_and_answer


def sort_by_length(logits_of: LogitFunction) -> LogitFunction:
    """Longest first; the logits come back in the order of the texts."""

    def sort_and_answer(texts: Sequence[str]) -> Logits:
        order = longest_first(texts)
        return logits_of([texts[place] for place in order])[np.argsort(order)]

    return sort_and_answer


def longest_first(texts: Sequence[str]) -> list[int]:
    """By their letters, as sentence-transformers does before it pads: nothing has been tokenized
    yet.
    """
    return sorted(range(len(texts)), key=lambda place: -len(texts[place]))
