"""Products in int8: weights quantised when the file is written, activations while it runs.

    x ≈ s (q − z)     q in 0…255, one s and z for all rows of a product, from their smallest and largest number
    W ≈ t p           p whole numbers, one t for every output

    x Wᵀ ≈ s t Σ_j (q_j − z) p_j

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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.data.packing import pack
from litotes.data.pieces import Pieces
from litotes.encoders.encoder import Block, Encoder
from litotes.runtime.graph import Graph
from litotes.runtime.products import Products, as_array

HIGHEST_SUM = 127
"""Of two neighbouring weights: rounding may add 1, and 255 · 128 is below 2¹⁵."""
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
    """What the inputs of a layer are like: how large each gets, and its mean. (input,) both"""

    largest: NDArray[np.float32]
    mean: NDArray[np.float32]


class Int8(Products):
    """Every layer's weights in int8 with a scale per output; tables in int8 with a scale per row.

    known: the inputs of layers, as far as somebody has looked.
    """

    def __init__(self, graph: Graph, known: Mapping[nn.Linear, Inputs]) -> None:
        super().__init__(graph)
        self.known = known

    def of(self, rows: str, layer: nn.Linear, *outputs: slice) -> list[str]:
        graph, weight, offset = self.graph, as_array(layer.weight), as_array(layer.bias)
        inputs = self.known.get(layer, Inputs(*np.zeros((2, layer.in_features), dtype=np.float32)))
        factors = _factors(inputs.largest)  # (input,)
        if (factors > 1).any():
            rows, weight = graph.add("Mul", rows, graph.constant(1 / factors)), weight * factors
        quantised, scale, zero = graph.add_several("DynamicQuantizeLinear", rows, n_outputs=3)
        products = []
        for some in outputs:
            steps, scales = quantise(weight[some], _largest_sums(weight[some]), HIGHEST_SUM)  # (output, input), (output, 1)
            corrected = offset[some] + (weight[some] - steps * scales) @ (inputs.mean / factors)
            rest = (scale, graph.constant(scales[:, 0]), zero, "", graph.constant(corrected))
            products.append(graph.add("MatMulIntegerToFloat", quantised, graph.constant(steps.T), *rest))
        return products

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


def _factors(largest: NDArray[np.float32]) -> NDArray[np.float32]:
    """By how much each channel is divided: 1 for those of usual size, and for all where none stands out. (input,)"""
    usual = np.quantile(largest, USUAL)
    if usual == 0 or largest.max() < OUTLIER * usual:
        return np.ones_like(largest)
    return np.maximum((largest / usual) ** TAKEN_OVER, 1).astype(np.float32)


@torch.no_grad()
def inputs_of_layers(encoder: Encoder, texts: Sequence[Pieces]) -> dict[nn.Linear, Inputs]:
    """What the inputs of every layer in the blocks are like in these texts.

    Which channels stand out belongs to the model more than to the texts: a few dozen will do.
    """
    largest: dict[nn.Linear, Tensor] = {}
    sums: dict[nn.Linear, Tensor] = {}
    n_rows: Counter[nn.Linear] = Counter()

    def look(layer: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
        (rows,) = inputs  # (piece, input)
        highest, total = rows.abs().amax(0), rows.sum(0)
        largest[layer] = torch.maximum(largest.get(layer, highest), highest)
        sums[layer] = sums.get(layer, 0) + total
        n_rows[layer] += len(rows)

    layers = [layer for block in encoder.blocks if isinstance(block, Block) for layer in _products_of(block)]
    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    try:
        for text in texts:
            encoder(pack([text], device=next(encoder.parameters()).device))
    finally:
        for hook in hooks:
            hook.remove()
    return {layer: Inputs(as_array(largest[layer]), as_array(sums[layer] / n_rows[layer])) for layer in layers if n_rows[layer]}


def _products_of(block: Block) -> tuple[nn.Linear, ...]:
    return block.attention.qkv, block.attention.output, block.inner, block.outer
