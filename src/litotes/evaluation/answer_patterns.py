"""Texts that no count can tell apart: the same gold class and the same answer from every model.

Resampling or swapping texts only asks how often each such pattern comes, and there are few of them:
at most 2^(1 + models) with two classes. Thousands of resamples then cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats

_LARGEST = 4_000_000
"""Numbers drawn at once: 32 MB."""


@dataclass(frozen=True)
class AnswerPatterns:
    """n (pattern,): how many texts have it; gold (pattern,); predicted (model, pattern)."""

    n: Counts
    gold: Counts
    predicted: Counts
    n_classes: int

    def confusions(self, n: NDArray[np.int64 | np.float64]) -> Floats:
        """Confusion counts of every model when pattern p comes n[…, p] times.

        (…, pattern) → (…, model, gold, predicted)
        """
        n_models, n_patterns = self.predicted.shape
        # (model, pattern): the confusion cell it falls into
        place = self.gold * self.n_classes + self.predicted
        one_hot = np.eye(self.n_classes**2)[place]  # (model, pattern, class²)
        by_pattern = one_hot.swapaxes(0, 1).reshape(n_patterns, -1)
        return np.asarray(
            (n @ by_pattern).reshape(*n.shape[:-1], n_models, self.n_classes, self.n_classes)
        )


def find_patterns(gold: Counts, predicted: Counts, n_classes: int) -> AnswerPatterns:
    """The patterns of some texts. gold (text,), predicted (model, text)"""
    columns, n = np.unique(np.vstack([gold, predicted]), axis=1, return_counts=True)
    return AnswerPatterns(n, columns[0], columns[1:], n_classes)


def split_draws(n_draws: int, n_patterns: int) -> Iterator[int]:
    """Cuts draws × patterns into parts that fit in memory: the number of draws of each."""
    size = max(1, _LARGEST // max(n_patterns, 1))
    for start in range(0, n_draws, size):
        yield min(size, n_draws - start)
