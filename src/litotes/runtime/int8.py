"""Products in int8: the steps of weights and of activations are both fixed when the file is written.

    x ≈ s (q − z)     q in 0…255, one s and z for a layer, from the smallest and the largest number seen there in some texts
    W ≈ t p           p whole numbers, one t for every output

    x Wᵀ ≈ s t Σ_j (q_j − z) p_j

Steps that are fixed make a text's answer its own: steps chosen while the file runs would have to be chosen for all texts of a group
together. They lose no more labels (3 of 700 against 3, MiniLM fine-tuned on BESSTIE), because it is the model that says how large
activations get, not the text. What goes beyond what was seen is cut off.

Three things cost accuracy, and all are met here without costing time, or little.

x86 processors without VNNI add two neighbouring products q p in 16 bits and cut off in silence what does not fit (vpmaddubsw). The
common remedy is to use 7 bits of a weight. But 255 (p_j + p_{j+1}) has to stay below 2¹⁵ only for neighbours of one sign, and two of the
largest weights are seldom neighbours: bounding the sum instead of each weight makes the steps 1.6 times finer in MiniLM. Such a file gives
the same on every processor.

Rounded weights are off by something, and inputs that are not 0 on average carry that into every row alike. The mean of it is known
beforehand and goes into the offset (Nagel et al. 2019, arXiv 1906.04721, §4.2).

A few channels of a Transformer's activations are ten times as large as all others (Dettmers et al. 2022, arXiv 2208.07339) and would
take all 256 steps for themselves. They are divided by a factor before the rows are quantised, and their weights multiplied by it
(Xiao et al. 2023, SmoothQuant, arXiv 2211.10438): exact but for rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.classifier import Classifier
from litotes.data.packing import pack
from litotes.data.pieces import Pieces
from litotes.runtime.graph import Graph
from litotes.runtime.products import Products, as_array

HIGHEST_SUM = 127
"""Of two neighbouring weights: rounding may add 1, and 255 · 128 is below 2¹⁵."""
HIGHEST_INPUT = 255
"""Of the steps of an activation: 8 bits without a sign."""
HIGHEST_IN_TABLE = 127
"""Tables are looked up, not multiplied: nothing is added up."""
USUAL = 0.97
"""The share of channels that counts as of usual size."""
TAKEN_OVER = 0.75
"""The power of a channel's excess that its weights take over; the rest stays with the activations, for weights are rounded too."""
OUTLIER = 2.0
"""How many times the largest usual channel a channel must reach before anything is done about it: each time costs a pass over the rows."""


@dataclass(frozen=True)
class Inputs:
    """What the inputs of a layer are like: the smallest and the largest seen of each, and its mean. (input,) all"""

    smallest: NDArray[np.float32]
    largest: NDArray[np.float32]
    mean: NDArray[np.float32]

    def steps(self) -> tuple[np.float32, np.uint8]:
        """The s and z of all of them together; 0 is a step, so that nothing stays nothing."""
        low, high = min(float(self.smallest.min()), 0.0), max(float(self.largest.max()), 0.0)
        scale = np.float32((high - low) / HIGHEST_INPUT or 1.0)
        return scale, np.uint8(np.rint(-low / scale))

    def factors(self) -> NDArray[np.float32]:
        """By how much each channel is divided: 1 for those of usual size, and for all where none stands out. (input,)"""
        sizes = np.maximum(self.largest, -self.smallest)
        usual = np.quantile(sizes, USUAL)
        if usual == 0 or sizes.max() < OUTLIER * usual:
            return np.ones_like(sizes)
        return np.maximum((sizes / usual) ** TAKEN_OVER, 1).astype(np.float32)

    def divided(self, factors: NDArray[np.float32]) -> Inputs:
        return Inputs(self.smallest / factors, self.largest / factors, self.mean / factors)


class Int8(Products):
    """Every layer's weights in int8 with a scale per output; tables in int8 with a scale per row. Rows stay (text, piece, width).

    known: the inputs of every layer.
    """

    def __init__(self, graph: Graph, known: Mapping[nn.Linear, Inputs]) -> None:
        super().__init__(graph)
        self.known = known

    def of(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        graph, weight, offset = self.graph, as_array(layer.weight), as_array(layer.bias)
        inputs = self.known[layer]
        factors = inputs.factors()  # (input,)
        if (factors > 1).any():
            rows, weight, inputs = graph.add("Mul", rows, graph.constant(1 / factors)), weight * factors, inputs.divided(factors)
        scale, zero = (graph.constant(value) for value in inputs.steps())
        quantised = graph.add("QuantizeLinear", rows, scale, zero)
        products = []
        for some in outputs:
            steps, scales = quantise(weight[some], _largest_sums(weight[some]), HIGHEST_SUM)  # (output, input), (output, 1)
            corrected = offset[some] + (weight[some] - steps * scales) @ inputs.mean
            rest = (scale, graph.constant(scales[:, 0]), zero, "", graph.constant(corrected))
            products.append(graph.add("MatMulIntegerToFloat", quantised, graph.constant(steps.T), *rest))
        return products

    def joined(self, values: str, width: int) -> str:
        return values

    def apart(self, rows: str, width: int) -> str:
        return rows

    def looked_up(self, table: Tensor, places: str) -> str:
        graph, rows = self.graph, as_array(table)
        steps, scales = quantise(rows, np.abs(rows).max(1, keepdims=True), HIGHEST_IN_TABLE)  # (entry, width), (entry, 1)
        whole = graph.cast(graph.pick(graph.constant(steps), places), np.float32)
        return graph.add("Mul", whole, graph.pick(graph.constant(scales), places))


def quantise(rows: NDArray[Any], largest: NDArray[Any], highest: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Each row as whole numbers times a scale of its own, such that `largest` (row, 1) becomes `highest`. → (row, width), (row, 1)"""
    scales = (np.where(largest > 0, largest, 1) / highest).astype(np.float32)
    return np.rint(rows / scales).astype(np.int8), scales


def _largest_sums(weight: NDArray[Any]) -> NDArray[Any]:
    """The largest sum of two neighbours of one sign, (output, 1); neighbours as the processor sees them: 0 and 1, 2 and 3, …"""
    even = np.pad(weight, ((0, 0), (0, weight.shape[1] % 2))).reshape(len(weight), -1, 2)  # (output, pair, 2)
    return np.maximum(even.clip(min=0).sum(2), -even.clip(max=0).sum(2)).max(1, keepdims=True)


@torch.no_grad()
def inputs_of_layers(classifier: Classifier, texts: Sequence[Pieces]) -> dict[nn.Linear, Inputs]:
    """What the inputs of every layer are like in these texts.

    How large they get belongs to the model more than to the texts: a few dozen will do.
    """
    seen: dict[nn.Linear, _Seen] = {}

    def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.Linear)
        (rows,) = inputs  # (row, input)
        before = seen.get(layer)
        seen[layer] = _Seen.of(rows) if before is None else before.and_also(_Seen.of(rows))

    hooks = [layer.register_forward_pre_hook(look) for layer in classifier.modules() if isinstance(layer, nn.Linear)]
    try:
        for text in texts:  # all pieces of the last layer too, even if the heads read the first alone: its product is asked the same way
            classifier.read(classifier.encoder(pack([text], device=next(classifier.parameters()).device)))
    finally:
        for hook in hooks:
            hook.remove()
    return {layer: rows.inputs() for layer, rows in seen.items()}


@dataclass(frozen=True)
class _Seen:
    """Rows seen so far: the smallest and the largest of each input, the sum, (input,) all, and how many."""

    smallest: Tensor
    largest: Tensor
    total: Tensor
    n: int

    @classmethod
    def of(cls, rows: Tensor) -> _Seen:
        return cls(rows.amin(0), rows.amax(0), rows.sum(0), len(rows))

    def and_also(self, more: _Seen) -> _Seen:
        smallest, largest = torch.minimum(self.smallest, more.smallest), torch.maximum(self.largest, more.largest)
        return _Seen(smallest, largest, self.total + more.total, self.n + more.n)

    def inputs(self) -> Inputs:
        return Inputs(*(as_array(values) for values in (self.smallest, self.largest, self.total / self.n)))
