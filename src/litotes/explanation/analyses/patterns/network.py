"""A small ConvNet that recognises the pattern of an attention map.

Three convolutions, each halving the grid, then what is left in 4 × 4 places together with the
shares (features.py):

    grid (2, 32, 32) and the distance of each cell from the diagonal
        → (16, 16, 16) → (24, 8, 8) → (32, 4, 4), 17 shares → 48 → 5 classes

Kovaleva et al. 2019 (arXiv 1908.08593, §4.1) trained theirs on 400 labelled maps of BERT; this one
learns from random maps alone (reproduction/patterns) and was checked against labels by eye on real
ones (docs/results/effective_attention/patterns.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
from safetensors.torch import load
from torch import Tensor, nn
from torch.nn import functional

from litotes.explanation.analyses.patterns.classes import CLASSES
from litotes.explanation.analyses.patterns.features import (
    GRID,
    N_CHANNELS,
    N_SHARES,
    MapFeatures,
    map_features,
)

WEIGHTS = "patterns.safetensors"

_WEIGHTS_AT_ONCE = 2**20  # 4 MB: maps classified together stay in a core's cache


@dataclass(frozen=True)
class Patterns:
    """What the network thinks of some maps: probabilities (map, class), classes in the order of
    CLASSES.
    """

    probabilities: Tensor

    @property
    def labels(self) -> list[str]:
        """The likeliest class of every map."""
        names = tuple(CLASSES)
        return [names[number] for number in self.probabilities.argmax(1).tolist()]


class PatternNetwork(nn.Module):
    """Features of maps → logits (map, class)."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *_halving(N_CHANNELS + 1, 16), *_halving(16, 24), *_halving(24, 32), nn.Flatten()
        )
        self.hidden = nn.Linear(32 * (GRID // 8) ** 2 + N_SHARES, 48)
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(48, len(CLASSES))
        place = torch.arange(GRID) / GRID
        # (cell, cell)
        self.register_buffer("distance", (place[:, None] - place[None, :]).abs(), persistent=False)

    def forward(self, features: MapFeatures) -> Tensor:
        distance = self.get_buffer("distance").expand(len(features.grids), 1, GRID, GRID)
        places = self.convolutions(torch.cat([features.grids, distance], 1))  # (map, 32 × 4 × 4)
        hidden = functional.relu(self.hidden(torch.cat([places, features.shares], 1)))
        return self.output(self.dropout(hidden))


def _halving(n_in: int, n_out: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(n_in, n_out, 4, stride=2, padding=1), nn.ReLU()


@torch.inference_mode()
def classify(maps: Tensor) -> Patterns:
    """The patterns of attention maps of one length, standard or effective. maps: (map, query, key)

    Scaling a map by a positive number changes nothing, and a map's answer does not depend on the
    others.
    """
    network = load_network(str(maps.device))
    n_together = max(1, _WEIGHTS_AT_ONCE // max(1, maps[:1].numel()))
    parts = [network(map_features(part)).softmax(1) for part in maps.split(n_together)]
    return Patterns(torch.cat(parts))


@cache
def load_network(device: str = "cpu") -> PatternNetwork:
    """The network with the weights of the package, which `python -m reproduction.patterns`
    makes.
    """
    network = PatternNetwork()
    network.load_state_dict(load(files(__package__).joinpath(WEIGHTS).read_bytes()))
    return network.to(device).eval()
