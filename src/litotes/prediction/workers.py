"""Texts on all cores: every worker computes one group of texts at a time, on one thread.

    texts  →  groups of equal length, the longest first  →  workers
           →  logits in the order of the texts

A second thread on one text saves a fifth to a third of its time; on another text it nearly doubles
what is done (docs/results/performance.md). So cores are given different texts. Texts of equal
length share the reading of the weights. The longest groups go first, so that no core is left with a
long one at the end. The workers share one session: ONNX Runtime computes a call on the thread that
makes it, all threads read the same weights, and one more core costs no memory.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from litotes.encoder.tokenizer import Pieces
from litotes.model.outputs import Outputs
from litotes.prediction.onnx.session import OnnxSession

MOST_TEXTS, MOST_PIECES = 16, 256
"""In a group of several: enough to share the reading of the weights.

Beyond it products run no faster and rows leave the cache.
"""


class Workers:
    """n threads over one session."""

    def __init__(self, session: OnnxSession, n: int) -> None:
        self.session, self.n = session, n
        self._pool, self._process = self._new_pool(), os.getpid()

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n, thread_name_prefix="litotes-worker")

    def logits(self, texts: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """{task: (text, class)}"""
        return self.compute(texts).logits

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        """What the model says of every text, in their order."""
        groups = list(group_by_length([len(text.ids) for text in texts]))
        logits = {
            task: np.empty((len(texts), n_outputs), dtype=np.float32)
            for task, n_outputs in self.session.n_outputs.items()
        }
        layers = np.empty(len(texts), dtype=np.int64)
        for places, computed in zip(groups, self._compute(texts, groups), strict=True):
            for task, values in computed.logits.items():
                logits[task][places] = values
            if computed.layers is not None:
                layers[places] = computed.layers
        return Outputs(logits, layers if self.session.has_exits else None)

    def _compute(self, texts: Sequence[Pieces], groups: Sequence[list[int]]) -> Iterator[Outputs]:
        def compute(places: list[int]) -> Outputs:
            return self.session.compute([texts[place] for place in places])

        if len(groups) <= 1 or self.n == 1:  # nothing to share: no detour by another thread
            return map(compute, groups)
        if self._process != os.getpid():  # threads do not survive a fork
            self._pool, self._process = self._new_pool(), os.getpid()
        return self._pool.map(compute, groups)


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts of equal length, the longest first, at most MOST_TEXTS and MOST_PIECES in a
    group of several.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, length in enumerate(lengths):
        by_length[length].append(place)
    for length in sorted(by_length, reverse=True):
        places = by_length[length]
        size = min(max(MOST_PIECES // length, 1), MOST_TEXTS)
        for start in range(0, len(places), size):
            yield places[start : start + size]
