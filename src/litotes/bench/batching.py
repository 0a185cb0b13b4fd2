"""How texts are handed to whoever answers: in batches as they come, or sorted by length first.

Who answers takes texts and gives the logits of all tasks side by side, (text, class); tokenizing is
inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
LogitFunction = Callable[[Sequence[str]], Logits]


def in_batches(ask: LogitFunction, size: int) -> LogitFunction:
    """So many at a time, in the order they come."""
    return lambda texts: np.concatenate(
        [ask(texts[start : start + size]) for start in range(0, len(texts), size)]
    )


def sort_by_length(ask: LogitFunction) -> LogitFunction:
    """Longest first, and put back afterwards."""

    def sort_and_ask(texts: Sequence[str]) -> Logits:
        order = longest_first(texts)
        return ask([texts[place] for place in order])[np.argsort(order)]

    return sort_and_ask


def longest_first(texts: Sequence[str]) -> list[int]:
    """By their letters, as sentence-transformers does before it pads: nothing has been tokenized
    yet.
    """
    return sorted(range(len(texts)), key=lambda place: -len(texts[place]))
