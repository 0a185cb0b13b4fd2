"""How sure an exit is: the chance that the whole model gives the same label, from the margin.

    minimise over a, b ≥ 0   − Σ t log σ(a + b m) + (1 − t) log(1 − σ(a + b m))

m is the margin, t nearly 1 where the labels agree and nearly 0 where they do not: (N₊ + 1) / (N₊ +
2) and 1 / (N₋ + 2), so that texts that all agree do not make an exit infinitely sure (Platt 1999,
Probabilistic outputs for support vector machines, §2.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from litotes.core.numbers import Floats
from litotes.model.exits import LARGEST, Sureness

_N_STEPS = 100
_TINY = 1e-9


def fit_sureness(margins: Floats, agrees: NDArray[np.bool_]) -> Sureness:
    """Margins (text,), agrees (text,)"""
    n_agree = int(agrees.sum())
    n_not = len(agrees) - n_agree
    targets = np.where(agrees, (n_agree + 1) / (n_agree + 2), 1 / (n_not + 2))
    offset, slope = _newton(margins, targets)
    if slope <= 0 or not np.isfinite([offset, slope]).all():  # a larger margin says nothing
        return Sureness(float(logit(targets.mean())), 0.0)
    return Sureness(float(np.clip(offset, -LARGEST, LARGEST)), float(min(slope, LARGEST)))


def _newton(margins: Floats, targets: Floats) -> tuple[float, float]:
    """The problem is convex; steps that would not lower the loss are halved."""
    inputs = np.stack([np.ones_like(margins), margins], axis=1)  # (text, 2)
    found = np.array([logit(targets.mean()), 0.0])
    loss = _loss(inputs @ found, targets)
    for _ in range(_N_STEPS):
        probabilities = expit(inputs @ found)
        slope = inputs.T @ (probabilities - targets)
        curvature = (inputs.T * (probabilities * (1 - probabilities))) @ inputs
        step = np.linalg.solve(curvature + _TINY * np.eye(2), slope)
        while (next_loss := _loss(inputs @ (found - step), targets)) > loss and np.any(step):
            step = step / 2 if np.abs(step).max() > _TINY else np.zeros(2)
        found, improved, loss = found - step, loss - next_loss, next_loss
        if improved <= _TINY * len(targets):
            break
    return float(found[0]), float(found[1])


def _loss(scores: Floats, targets: Floats) -> float:
    return float((np.logaddexp(0, scores) - targets * scores).sum())
