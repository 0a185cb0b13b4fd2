"""How texts are handed to whoever answers: in batches, sorted by length first, or one by one in several threads.

Who answers takes texts and gives the logits of all tasks side by side, (text, class); tokenizing is inside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Asked = Callable[[Sequence[str]], Logits]


def in_batches(ask: Asked, size: int) -> Asked:
    """So many at a time, in the order they come."""
    return lambda texts: np.concatenate([ask(texts[start : start + size]) for start in range(0, len(texts), size)])


def by_length(ask: Asked) -> Asked:
    """Longest first, and put back afterwards."""

    def sort_and_ask(texts: Sequence[str]) -> Logits:
        order = longest_first(texts)
        return ask([texts[place] for place in order])[np.argsort(order)]

    return sort_and_ask


def longest_first(texts: Sequence[str]) -> list[int]:
    """By their letters, as sentence-transformers does before it pads: nothing has been tokenized yet."""
    return sorted(range(len(texts)), key=lambda place: -len(texts[place]))


def in_threads(workers: Sequence[Asked]) -> Asked:
    """Each worker, in a thread of its own, takes the next text as soon as it is free; answers come in the texts' order."""

    def share_out(texts: Sequence[str]) -> Logits:
        waiting = deque(enumerate(texts))  # safe to take from in several threads
        answers: list[Logits | None] = [None] * len(texts)

        def work(ask: Asked) -> None:
            while True:
                try:
                    place, text = waiting.popleft()
                except IndexError:  # nothing left; looking first and taking then would not be one step
                    return
                answers[place] = ask([text])

        with ThreadPoolExecutor(len(workers)) as pool:
            for working in [pool.submit(work, ask) for ask in workers]:
                working.result()
        return np.concatenate(cast("list[Logits]", answers))

    return share_out
