"""Weights as whole numbers times a scale.

Rounding every weight to the nearest step makes the error of each weight smallest, not that of the
product. With GPTQ (Frantar et al. 2023, arXiv 2210.17323, §3) the columns of W, one for every
input, are rounded one after the other, and what a column has lost is made good by those that are
not rounded yet, as far as their inputs vary together:

    H = covariance of the inputs        H⁻¹ = UᵀU, U upper triangular
    e_j = (w_j − p_j) / U_jj            w_k ← w_k − e_j U_jk for all k > j

Inputs that vary independently give plain rounding. The covariance stands where the paper has second
moments, because the mean of the error goes into the offset anyway. It costs nothing when the file
runs. In MiniLM it halves what rounded weights do to a logit.

x86 processors without VNNI add two neighbouring products in 16 bits; see int8.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HIGHEST_SUM = 127
"""Of two neighbouring weights: rounding may add 1, and 255 · 128 is below 2¹⁵."""
_HIGHEST = 127
"""Of one weight: 8 bits, signed."""
_DAMPING = 0.01
"""The share of the mean variance that is added to all: few texts leave some directions out."""
_BLOCK = 128
"""Columns after which the error is carried to all others at once, which is quicker."""


def quantise(
    rows: NDArray[Any], largest: NDArray[Any], highest: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Each row as whole numbers times a scale of its own, such that `largest` (row, 1) becomes
    `highest`. → (row, width), (row, 1)
    """
    scales = _scales(largest, highest)
    return np.rint(rows / scales).astype(np.int8), scales


def round_weights(
    weight: NDArray[Any], covariance: NDArray[Any] | None
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """weight: (output, input). covariance: of the inputs, (input, input); None: not known.

    → whole numbers (output, input), scales (output, 1)
    """
    sums = largest_sums(weight)
    if covariance is None or not covariance.any():
        return quantise(weight, sums, HIGHEST_SUM)
    scales = _scales(sums, HIGHEST_SUM)
    rest = (weight / scales).astype(np.float64)
    steps = np.zeros_like(rest)
    factor = _inverse_factor(covariance)
    n = rest.shape[1]
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        errors = np.empty((len(rest), end - start))
        for column in range(start, end):
            neighbour = steps[:, column - 1] if column % 2 else np.zeros(len(rest))
            steps[:, column] = _round_column(rest[:, column], neighbour)
            error = (rest[:, column] - steps[:, column]) / factor[column, column]
            rest[:, column + 1 : end] -= np.outer(error, factor[column, column + 1 : end])
            errors[:, column - start] = error
        rest[:, end:] -= errors @ factor[start:end, end:]
    return steps.astype(np.int8), scales


def _round_column(values: NDArray[Any], neighbour: NDArray[Any]) -> NDArray[Any]:
    """The nearest whole numbers that fit: with their neighbours of the same sign as well."""
    lowest = np.maximum(-_HIGHEST, -(HIGHEST_SUM + 1) - neighbour.clip(max=0))
    highest = np.minimum(_HIGHEST, HIGHEST_SUM + 1 - neighbour.clip(min=0))
    nearest: NDArray[Any] = np.clip(np.rint(values), lowest, highest)
    return nearest


def _inverse_factor(covariance: NDArray[Any]) -> NDArray[np.float64]:
    """U, upper triangular, with UᵀU = H⁻¹. (input, input)"""
    damping = _DAMPING * np.diag(covariance).mean()
    damped = covariance.astype(np.float64) + damping * np.eye(len(covariance))
    factor: NDArray[np.float64] = np.linalg.cholesky(np.linalg.inv(damped)).T
    return factor


def _scales(largest: NDArray[Any], highest: int) -> NDArray[np.float32]:
    return (np.where(largest > 0, largest, 1) / highest).astype(np.float32)


def largest_sums(weight: NDArray[Any]) -> NDArray[Any]:
    """The largest sum of two neighbours of one sign, (output, 1); neighbours as the processor sees
    them: 0 and 1, 2 and 3, …
    """
    # (output, pair, 2)
    even = np.pad(weight, ((0, 0), (0, weight.shape[1] % 2))).reshape(len(weight), -1, 2)
    return np.maximum(even.clip(min=0).sum(2), -even.clip(max=0).sum(2)).max(1, keepdims=True)
