"""Macro-F1 of two classes in each variety of English."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litotes.core.numbers import confusion, macro_f1


def scores_by_variety(
    gold: Sequence[int], predicted: Sequence[int], varieties: Sequence[str]
) -> dict[str, float]:
    """All three in the order of the texts; the varieties in theirs."""
    found = {}
    for variety in sorted(set(varieties)):
        places = [place for place, own in enumerate(varieties) if own == variety]
        counts = confusion(np.take(gold, places), np.take(predicted, places), 2)
        found[variety] = float(macro_f1(counts))
    return found
