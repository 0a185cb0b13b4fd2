"""The threshold from which on texts may leave, so that few are answered otherwise than by the whole
model: a promise with a stated confidence.

Thresholds are tried from the strictest to the mildest, in an order fixed before any of the texts
tested on was looked at. Of a threshold λ under which k of n texts differ, the null hypothesis "more
than a share α differs" has the p-value

    p(λ) = P(Binomial(n, α) ≤ k)

and is rejected where p(λ) ≤ δ. The last threshold before the first that is not rejected is taken:
fixed sequence testing, with which a share 1 − δ of all such choices keeps the promise, whatever the
model and however the risk depends on λ (Angelopoulos et al. 2021, Learn then Test, arXiv
2110.01052, §2 and §2.3; for exits: Schuster et al. 2022, CALM, arXiv 2207.07061, §4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from litotes.core.numbers import Counts, Floats

N_CANDIDATES = 200


@dataclass(frozen=True)
class Rehearsal:
    """What every exit would say of some texts.

    log_odds: how sure it is, of the task it is least sure of, (exit, text).
    agrees: whether its labels are those of the whole model, (exit, text).
    """

    log_odds: Floats
    agrees: NDArray[np.bool_]

    @property
    def n_texts(self) -> int:
        return self.agrees.shape[1]

    def places(self, cut: float) -> Counts:
        """The exit by which each text leaves, by its place; the number of exits: none. (text,)"""
        is_sure = self.log_odds >= cut
        return np.where(is_sure.any(0), is_sure.argmax(0), len(is_sure))

    def differs(self, cut: float) -> NDArray[np.bool_]:
        """Which texts leave with another answer than that of the whole model. (text,)"""
        places = self.places(cut)
        last = np.ones((1, self.n_texts), dtype=np.bool_)  # the whole model agrees with itself
        answers = np.concatenate([self.agrees, last])
        return ~answers[places, np.arange(self.n_texts)]


def candidate_cuts(log_odds: Floats) -> list[float]:
    """Thresholds as log-odds, the strictest first, each letting about as many more texts leave.

    log_odds: of texts that are not tested on, (exit, text)
    """
    surest = log_odds.max(0)
    shares = np.linspace(1, 0, N_CANDIDATES + 1)[1:]
    return sorted({float(cut) for cut in np.quantile(surest, shares)}, reverse=True)


def choose_cut(
    rehearsal: Rehearsal, cuts: Sequence[float], *, allowed: float, confidence: float
) -> float | None:
    """The mildest threshold that keeps the promise; None: not even the strictest does.

    cuts: in the order in which they are tested. allowed: the share of texts that may differ.
    """
    chosen = None
    for cut in cuts:
        n_differ = int(rehearsal.differs(cut).sum())
        if bdtr(n_differ, rehearsal.n_texts, allowed) > 1 - confidence:
            break
        chosen = cut
    return chosen


def n_needed(*, allowed: float, confidence: float) -> int:
    """The fewest texts with which a promise can be made at all: none of them may differ."""
    return math.ceil(math.log(1 - confidence) / math.log(1 - allowed))
