"""Products in int8: the steps of weights and of activations are both fixed when the file is
written.

    x ≈ s (q − z)     q in 0…255, one s and z for a layer, from its inputs in some texts
    W ≈ t p           p whole numbers, one t for every output

    x Wᵀ ≈ s t Σ_j (q_j − z) p_j

With fixed steps a text's answer does not depend on other texts: steps chosen while the file runs
would have to be chosen for all texts of a group together. They lose no more labels, because the
model decides how large activations get, not the text. Steps that reach as far as the largest number
seen are coarse for all others, so they reach only as far as makes the error of the product smallest
(0.7 of it before queries, keys and values in MiniLM, all of it nearly everywhere else); what lies
beyond is clipped. Of 3 × 1,000 BESSTIE texts, read by files made from three sets of texts, 18
labels changed that way, 27 with all of the range, 19 with steps chosen while the file runs.

Four things cost accuracy, and all are met here at little or no cost in time.

x86 processors without VNNI add two neighbouring products q p in 16 bits and silently clip what does
not fit (vpmaddubsw). The common remedy is to use 7 bits of a weight. But 255 (p_j + p_{j+1}) has to
stay below 2¹⁵ only for neighbours of one sign, and two of the largest weights are seldom
neighbours: bounding the sum instead of each weight makes the steps 1.6 times finer in MiniLM.
Integer products of such a file are exact on every processor.

Rounded weights are slightly off, and rounding every weight to the nearest step makes the error of
each weight smallest, not that of the product. With GPTQ (Frantar et al. 2023, arXiv 2210.17323, §3)
the columns of W, one for every input, are rounded one after the other, and what a column has lost
is made good by those that are not rounded yet, as far as their inputs vary together:

    H = covariance of the inputs        H⁻¹ = UᵀU, U upper triangular
    e_j = (w_j − p_j) / U_jj            w_k ← w_k − e_j U_jk for all k > j

Inputs that vary independently give plain rounding. The covariance stands where the paper has second
moments, because the mean of the error goes into the offset anyway. It costs nothing when the file
runs. In MiniLM it halves what rounded weights do to a logit.

What is left of that error is not 0 on average, where inputs are not: it is carried into every row
alike. The mean of it is known beforehand and goes into the offset (Nagel et al. 2019, arXiv
1906.04721, §4.2).

A few channels of a Transformer's activations are ten times as large as all others (Dettmers et al.
2022, arXiv 2208.07339) and would take all 256 steps for themselves. They are divided by a factor
before the rows are quantised, and their weights multiplied by it (Xiao et al. 2023, SmoothQuant,
arXiv 2211.10438): exact except for rounding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.model.classifier import Classifier

Array = NDArray[Any]

HIGHEST_SUM = 127
"""Of two neighbouring weights: rounding may add 1, and 255 · 128 is below 2¹⁵."""
_HIGHEST = 127
"""Of one weight: 8 bits, signed."""
_DAMPING = 0.01
"""The share of the mean variance that is added to all: few texts leave some directions out."""
_BLOCK = 128
"""Columns after which the error is carried to all others at once, which is quicker."""
HIGHEST_INPUT = 255
"""Of the steps of an activation: 8 bits, unsigned."""
HIGHEST_IN_TABLE = 127
"""Of the steps of a table: it is looked up, not multiplied, so nothing is added up."""
REACHES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Shares of the range seen that the steps may cover; of two equally good ones the larger."""
ROW_STRIDE = 4
"""One row in so many is enough to choose a reach."""
USUAL = 0.9
"""The share of channels that counts as usual in size."""
SMOOTHING = 0.75
"""The power of a channel's excess that moves into its weights; the rest stays with the activations,
because weights are rounded too.
"""
OUTLIER = 2.0
"""How many times the largest usual channel a channel must reach before it is divided: that costs a
pass over the rows.
"""


_TEXTS_AT_ONCE = 16


@dataclass(frozen=True)
class Inputs:
    """The inputs of a layer: the smallest and the largest value seen of each, and its mean.

    (input,) all

    reach: the share of that range which the steps cover. covariance: (input, input); None: not
    known.
    """

    smallest: NDArray[np.float32]
    largest: NDArray[np.float32]
    mean: NDArray[np.float32]
    reach: float = 1.0
    covariance: NDArray[np.float32] | None = None

    def steps(self) -> tuple[np.float32, np.uint8]:
        """The s and z of all of them together; 0 is a step of its own, so it stays exactly 0."""
        low, high = min(float(self.smallest.min()), 0.0), max(float(self.largest.max()), 0.0)
        scale = np.float32(self.reach * (high - low) / HIGHEST_INPUT or 1.0)
        return scale, np.uint8(np.rint(-self.reach * low / scale))

    def round(self, values: Array) -> Array:
        """Rounds values (row, input) to these steps."""
        scale, zero = self.steps()
        steps = np.clip(np.rint(values / scale) + zero, 0, HIGHEST_INPUT)
        return (steps - zero) * scale

    def factors(self) -> NDArray[np.float32]:
        """Chooses by how much each channel is divided: 1 for those of usual size, and for all if
        none stands out. (input,)
        """
        sizes = np.maximum(self.largest, -self.smallest)
        usual = np.quantile(sizes, USUAL)
        if usual == 0 or sizes.max() < OUTLIER * usual:
            return np.ones_like(sizes)
        return np.maximum((sizes / usual) ** SMOOTHING, 1).astype(np.float32)

    def divide(self, factors: NDArray[np.float32]) -> Inputs:
        smallest, largest = self.smallest / factors, self.largest / factors
        covariance = None
        if self.covariance is not None:
            covariance = self.covariance / np.outer(factors, factors)
        return Inputs(smallest, largest, self.mean / factors, self.reach, covariance)


def as_array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.detach().float().cpu().numpy().astype(np.float32, copy=False)


def measure_inputs(classifier: Classifier, texts: Sequence[Pieces]) -> dict[nn.Linear, Inputs]:
    """The inputs of every layer in these texts.

    How large they get belongs to the model more than to the texts: a few dozen will do.
    """
    seen: dict[nn.Linear, list[Any]] = {}
    errors: defaultdict[nn.Linear, Any] = defaultdict(float)  # for every reach, (reach,)

    def add_rows(layer: nn.Linear, rows: Tensor) -> None:
        # the smallest and the largest of each input, the sum, (input,) all, the sums of the
        # products of two, (input, input), and how many rows
        own = [rows.amin(0), rows.amax(0), rows.sum(0), rows.T @ rows, len(rows)]
        if layer in seen:
            join = (torch.minimum, torch.maximum, add, add, add)
            own = [both(*pair) for both, *pair in zip(join, seen[layer], own, strict=True)]
        seen[layer] = own

    def add_errors(layer: nn.Linear, rows: Tensor) -> None:
        errors[layer] += _rounding_errors(layer, known[layer], rows[::ROW_STRIDE])

    _visit_inputs(classifier, texts, add_rows)
    known = {}
    for layer, (smallest, largest, total, products, n) in seen.items():
        mean = as_array(total / n)
        covariance = as_array(products / n) - np.outer(mean, mean)
        known[layer] = Inputs(as_array(smallest), as_array(largest), mean, covariance=covariance)
    _visit_inputs(classifier, texts, add_errors)
    return {
        layer: replace(inputs, reach=REACHES[int(np.argmin(errors[layer]))])
        for layer, inputs in known.items()
    }


def _rounding_errors(layer: nn.Linear, inputs: Inputs, rows: Tensor) -> Array:
    """Σ_j (x̂_j − x_j)² Σ_i W_ij², what rounding and clipping inputs does to the layer's outputs,
    for every reach. (reach,)
    """
    factors = inputs.factors()
    importance = ((as_array(layer.weight) * factors) ** 2).sum(0)  # (input,)
    values, divided = as_array(rows) / factors, inputs.divide(factors)
    errors = []
    for reach in REACHES:
        rounded = replace(divided, reach=reach).round(values)
        errors.append(float(((rounded - values) ** 2 @ importance).sum()))
    return np.array(errors)


@torch.no_grad()
def _visit_inputs(
    classifier: Classifier, texts: Sequence[Pieces], visit: Callable[[nn.Linear, Tensor], None]
) -> None:
    """Reads the texts and calls `visit` with the inputs of every layer, (row, input).

    All pieces go through the last layer, even if the heads read only the first: its keys and values
    are those of all.
    """

    def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.Linear)
        visit(layer, inputs[0])

    layers = [layer for layer in classifier.modules() if isinstance(layer, nn.Linear)]
    hooks = [layer.register_forward_pre_hook(hook) for layer in layers]
    try:
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = pack(texts[start : start + _TEXTS_AT_ONCE], device=classifier.device)
            classifier.read(classifier.encoder(batch))
    finally:
        for registered in hooks:
            registered.remove()


def quantise(
    rows: Array, largest: Array, highest: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Writes each row as whole numbers times a scale of its own, such that `largest` (row, 1)
    becomes `highest`. → (row, width), (row, 1)
    """
    scales = _scales(largest, highest)
    return np.rint(rows / scales).astype(np.int8), scales


def round_weights(
    weight: Array, covariance: Array | None
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


def _round_column(values: Array, neighbour: Array) -> Array:
    """The nearest whole numbers that fit: with their neighbours of the same sign as well."""
    lowest = np.maximum(-_HIGHEST, -(HIGHEST_SUM + 1) - neighbour.clip(max=0))
    highest = np.minimum(_HIGHEST, HIGHEST_SUM + 1 - neighbour.clip(min=0))
    return np.asarray(np.clip(np.rint(values), lowest, highest))


def _inverse_factor(covariance: Array) -> Array:
    """U, upper triangular, with UᵀU = H⁻¹. (input, input)"""
    damping = _DAMPING * np.diag(covariance).mean()
    damped = covariance.astype(np.float64) + damping * np.eye(len(covariance))
    return np.asarray(np.linalg.cholesky(np.linalg.inv(damped)).T)


def _scales(largest: Array, highest: int) -> NDArray[np.float32]:
    return (np.where(largest > 0, largest, 1) / highest).astype(np.float32)


def largest_sums(weight: Array) -> Array:
    """The largest sum of two neighbours of one sign, (output, 1); neighbours as the processor sees
    them: 0 and 1, 2 and 3, …
    """
    # (output, pair, 2)
    even = np.pad(weight, ((0, 0), (0, weight.shape[1] % 2))).reshape(len(weight), -1, 2)
    return np.maximum(even.clip(min=0).sum(2), -even.clip(max=0).sum(2)).max(1, keepdims=True)
