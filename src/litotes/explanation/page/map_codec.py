"""Attention maps small enough for a page: whole numbers of one byte, squeezed by zlib, written in
base64.

A text of 512 pieces in 6 layers of 12 attention heads has 38 million weights. Two things make them
9 MB:

* weights as levels, w = scale · (q / n_levels)²: the square keeps weights of 1/512 apart from 0
  where the greatest is 1/2.
* an effective map A⊥ = O V⁺ has no more rank than V has columns, so two thin factors hold all of a
  long text's: A⊥ = L R with L (query, rank), R (rank, key), each column in 255 steps of its own
  scale. 32 kB instead of 260, with an error of some hundredths of the typical weight.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

N_LEVELS = (255, 127, 63, 31, 15)
"""The most that fit are taken; fewer than 15 would show steps to the eye."""

_STEPS = 127  # of a factor, either side of 0


@dataclass(frozen=True)
class PackedMap:
    """One map, (query, key).

    scales: of levels the greatest weight; of factors one number per rank, by which products of
    steps are multiplied.
    n_levels: 0 for factors. error: how far a weight may be off at most.
    """

    n_pieces: int
    n_levels: int
    scales: tuple[float, ...]
    error: float
    data: str


def as_levels(weights: Tensor, *, n_levels: int) -> PackedMap:
    """weights: (query, key). Up to 127 levels there are as many below 0."""
    values = weights.double().cpu().numpy()
    assert n_levels <= _STEPS or values.min() >= 0
    scale = float(np.abs(values).max()) or 1.0
    levels = np.sign(values) * np.rint(n_levels * np.sqrt(np.abs(values) / scale))
    data = _compress(levels.astype(_integer_type(n_levels)))
    return PackedMap(len(values), n_levels, (_short(scale),), scale / n_levels, data)


def as_factors(weights: Tensor, *, rank: int) -> PackedMap:
    """weights: (query, key) of at most this rank."""
    exact = weights.double().cpu()
    left, strengths, right = _thin_svd(exact, rank)
    left_most, right_most = _greatest(left), _greatest(right)
    left_steps = (left / left_most * _STEPS).round()  # (query, rank)
    right_steps = (right / right_most * _STEPS).round()  # (key, rank)
    scales = strengths * left_most * right_most / _STEPS**2
    error = float(((left_steps * scales) @ right_steps.mT - exact).abs().max())
    data = torch.stack([left_steps, right_steps]).to(torch.int8)  # (side, piece, rank)
    shown = tuple(map(_short, scales.tolist()))
    return PackedMap(len(exact), 0, shown, error, _compress(data.numpy()))


def _thin_svd(exact: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """(query, rank), (rank,), (key, rank): by a random sketch (Halko et al. 2011, arXiv 0909.4061),
    exact for weights of at most this rank.
    """
    generator = torch.Generator().manual_seed(0)
    sketch = exact @ torch.randn(len(exact), rank, generator=generator, dtype=torch.float64)
    basis = torch.linalg.qr(sketch).Q  # (query, rank)
    inner, strengths, right = torch.linalg.svd(basis.mT @ exact, full_matrices=False)
    return basis @ inner, strengths, right.mT


def _greatest(side: Tensor) -> Tensor:
    return side.abs().amax(0).clamp_min(1e-30)


def levels_within(maps: Sequence[Tensor], budget: int) -> int:
    """Finds how many levels all attention heads of all layers may have, so that they take about
    `budget` letters. maps: per layer (attention_head, query, key)

    The first attention head of each layer stands for the others.
    """
    for n_levels in N_LEVELS[:-1]:
        n_letters = (
            len(heads) * len(as_levels(heads[0], n_levels=n_levels).data)
            for heads in maps
            if len(heads)
        )
        if sum(n_letters) <= budget:
            return n_levels
    return N_LEVELS[-1]


def _integer_type(n_levels: int) -> type[np.int8] | type[np.uint8]:
    return np.int8 if n_levels <= _STEPS else np.uint8


def _compress(values: NDArray[np.int8 | np.uint8]) -> str:
    """Looks for runs alone: measured as small, and five times as fast."""
    packer = zlib.compressobj(6, strategy=zlib.Z_RLE)
    return b64encode(packer.compress(values.tobytes()) + packer.flush()).decode()


def _short(value: float) -> float:
    return float(f"{value:.7g}")
