"""Numbers as they are written everywhere, and the two scores that every stage needs: macro-F1 from
confusion counts, and the correlation that takes its place for numbers.

    macro-F1 = mean over classes of 2·tp / (2·tp + fp + fn), classes that neither occur nor are
    predicted left out

Everything that is said about a classifier's answers follows from these counts, and counts are cheap
to resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def format_signed(value: float, digits: int, *, minus: str = "-", plus: str = "+") -> str:
    """A number with its sign and so many decimal places. plus: what stands before 0 and above.

    What rounds to zero is written as zero: on another processor the last bit of a sum may differ,
    and −0.000 would say that something had become worse.
    """
    written = f"{value:+z.{digits}f}"  # z: no negative zero
    return written.replace("-", minus).replace("+", plus)


def counted(n: int, thing: str) -> str:
    """1 row, 2,000 rows."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def confusion(
    gold: Sequence[int] | Counts, predicted: Sequence[int] | Counts, n_classes: int
) -> Counts:
    """Counts of texts by (gold, predicted). (class, class)"""
    flat = np.asarray(gold, dtype=np.int64) * n_classes + np.asarray(predicted, dtype=np.int64)
    return np.bincount(flat, minlength=n_classes * n_classes).reshape(n_classes, n_classes)


def macro_f1(counts: NDArray[Any], among: NDArray[np.bool_] | None = None) -> Floats:
    """Macro-F1 of confusion counts (…, gold, predicted) → (…).

    among: the classes to average over; without it those that occur or are predicted. A resample
    must be averaged over the classes of the whole sample, or it would gain from losing a rare
    class.
    """
    hits = np.diagonal(counts, axis1=-2, axis2=-1).astype(float)  # (…, class)
    seen = counts.sum(-1) + counts.sum(-2)  # 2·tp + fp + fn
    f1 = np.divide(2 * hits, seen, out=np.zeros_like(hits), where=seen > 0)
    counted = seen > 0 if among is None else among
    return np.asarray((f1 * counted).sum(-1) / np.maximum(counted.sum(-1), 1))


def classes_of(counts: Counts) -> NDArray[np.bool_]:
    """Tells which classes occur or are predicted. (class,)"""
    return np.asarray(counts.sum(0) + counts.sum(1) > 0)


def pearson(a: Floats, b: Floats) -> Floats:
    """Correlation along the last axis; 0 where one side is constant."""
    # equal numbers need not equal their mean to the last bit, so the spread alone would not tell
    varies = (np.ptp(a, axis=-1) > 0) & (np.ptp(b, axis=-1) > 0)
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    spread = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.asarray(
        np.divide((a * b).sum(-1), spread, out=np.zeros_like(spread), where=varies & (spread > 0))
    )


def ranks(values: Floats) -> Floats:
    """Ranks with ties shared."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return np.asarray((ends - (counts - 1) / 2)[inverse], float)
