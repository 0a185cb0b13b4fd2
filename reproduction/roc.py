"""How well a number tells two kinds of texts or words apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats, ranks


def roc_area(values: Floats, meant: NDArray[np.bool_]) -> float:
    """How often what is meant has the higher value of two; ties count half.

    (Σ ranks of what is meant − n (n + 1) / 2) / (n · m)          Mann and Whitney 1947
    """
    n_meant, n_others = int(meant.sum()), int((~meant).sum())
    if not n_meant or not n_others:
        return float("nan")
    rank_sum = ranks(values)[meant].sum()
    return float((rank_sum - n_meant * (n_meant + 1) / 2) / (n_meant * n_others))
