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

Rounded weights are slightly off. They are rounded one after the other, each such that it makes good
what those before it have lost (rounding.py).

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.graph import Graph
from litotes.exporting.products import Products, as_array, offset_of
from litotes.exporting.rounding import quantise, round_weights
from litotes.model.classifier import Classifier

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

    def round(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is left of values (row, input) that are written in these steps."""
        scale, zero = self.steps()
        steps = np.clip(np.rint(values / scale) + zero, 0, HIGHEST_INPUT)
        return (steps - zero) * scale

    def factors(self) -> NDArray[np.float32]:
        """By how much each channel is divided: 1 for those of usual size, and for all if none
        stands out. (input,)
        """
        sizes = np.maximum(self.largest, -self.smallest)
        usual = np.quantile(sizes, USUAL)
        if usual == 0 or sizes.max() < OUTLIER * usual:
            return np.ones_like(sizes)
        return np.maximum((sizes / usual) ** SMOOTHING, 1).astype(np.float32)

    def divide(self, factors: NDArray[np.float32]) -> Inputs:
        smallest, largest = self.smallest / factors, self.largest / factors
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance / np.outer(factors, factors)
        return Inputs(smallest, largest, self.mean / factors, self.reach, covariance)


class Int8(Products):
    """Every layer's weights in int8 with a scale per output; tables in int8 with a scale per row.

    Rows stay (text, piece, width).

    known: the inputs of every layer.
    """

    def __init__(self, graph: Graph, known: Mapping[nn.Linear, Inputs]) -> None:
        super().__init__(graph)
        self.known = known

    def apply_parts(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        graph, weight, offset = self.graph, as_array(layer.weight), offset_of(layer)
        inputs = self.known[layer]
        factors = inputs.factors()  # (input,)
        if (factors > 1).any():
            rows = graph.times(rows, graph.constant(1 / factors))
            weight = weight * factors
            inputs = inputs.divide(factors)
        scale, zero = (graph.constant(value) for value in inputs.steps())
        quantised = (graph.add("QuantizeLinear", rows, scale, zero), scale, zero)
        return [self._multiply(quantised, weight[part], offset[part], inputs) for part in outputs]

    def _multiply(
        self,
        quantised: tuple[str, str, str],
        weight: NDArray[Any],
        offset: NDArray[Any],
        inputs: Inputs,
    ) -> str:
        """quantised: rows in steps, their scale and their zero. weight: (output, input)"""
        graph, (rows, scale, zero) = self.graph, quantised
        # (output, input), (output, 1)
        steps, scales = round_weights(weight, inputs.covariance)
        corrected = offset + (weight - steps * scales) @ inputs.mean
        rest = (scale, graph.constant(scales[:, 0]), zero, "", graph.constant(corrected))
        return graph.add("MatMulIntegerToFloat", rows, graph.constant(steps.T), *rest)

    def to_rows(self, values: str, width: int) -> str:
        return values

    def to_texts(self, rows: str, width: int) -> str:
        return rows

    def look_up(self, table: Tensor, places: str) -> str:
        graph, rows = self.graph, as_array(table)
        # (entry, width), (entry, 1)
        steps, scales = quantise(rows, np.abs(rows).max(1, keepdims=True), HIGHEST_IN_TABLE)
        whole = graph.cast(graph.gather(graph.constant(steps), places), np.float32)
        return graph.times(whole, graph.gather(graph.constant(scales), places))


def measure_inputs(classifier: Classifier, texts: Sequence[Pieces]) -> dict[nn.Linear, Inputs]:
    """The inputs of every layer in these texts.

    How large they get belongs to the model more than to the texts: a few dozen will do.
    """
    known = {layer: span.inputs() for layer, span in _measure_spans(classifier, texts).items()}
    for layer, errors in _measure_errors(classifier, texts, known).items():
        known[layer] = replace(known[layer], reach=REACHES[int(np.argmin(errors))])
    return known


def _measure_spans(classifier: Classifier, texts: Sequence[Pieces]) -> dict[nn.Linear, _Span]:
    spans: dict[nn.Linear, _Span] = {}

    def add_rows(layer: nn.Linear, rows: Tensor) -> None:
        span = _Span.of(rows)
        spans[layer] = spans[layer].merge(span) if layer in spans else span

    _visit_inputs(classifier, texts, add_rows)
    return spans


def _measure_errors(
    classifier: Classifier, texts: Sequence[Pieces], known: Mapping[nn.Linear, Inputs]
) -> Mapping[nn.Linear, float | NDArray[np.float64]]:
    """The error of every layer, for every reach. (reach,) each"""
    errors: defaultdict[nn.Linear, float | NDArray[np.float64]] = defaultdict(float)

    def add_errors(layer: nn.Linear, rows: Tensor) -> None:
        errors[layer] += _rounding_errors(layer, known[layer], rows[::ROW_STRIDE])

    _visit_inputs(classifier, texts, add_errors)
    return errors


def _rounding_errors(layer: nn.Linear, inputs: Inputs, rows: Tensor) -> NDArray[np.float64]:
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


@dataclass(frozen=True)
class _Span:
    """Rows seen so far: the smallest and the largest of each input, the sum, (input,) all, the sums
    of the products of two, (input, input), and how many.
    """

    smallest: Tensor
    largest: Tensor
    total: Tensor
    products: Tensor
    n: int

    @classmethod
    def of(cls, rows: Tensor) -> _Span:
        return cls(rows.amin(0), rows.amax(0), rows.sum(0), rows.T @ rows, len(rows))

    def merge(self, other: _Span) -> _Span:
        smallest = torch.minimum(self.smallest, other.smallest)
        largest = torch.maximum(self.largest, other.largest)
        total, products = self.total + other.total, self.products + other.products
        return _Span(smallest, largest, total, products, self.n + other.n)

    def inputs(self) -> Inputs:
        mean = as_array(self.total / self.n)
        covariance = as_array(self.products / self.n) - np.outer(mean, mean)
        smallest, largest = as_array(self.smallest), as_array(self.largest)
        return Inputs(smallest, largest, mean, covariance=covariance)
