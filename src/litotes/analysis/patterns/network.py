"""A small ConvNet that tells the pattern of an attention map.

Three convolutions, each halving the grid, then what is left in 4 × 4 places:

    grid (2, 32, 32) and how far each cell is from the diagonal → (16, 16, 16) → (24, 8, 8) → (32, 4, 4) → 48 → 5 classes

Kovaleva et al. 2019 (arXiv 1908.08593, §4.1) trained theirs on 400 labelled maps of BERT; this one learns from generated maps alone
(generated.py) and was checked against labels by eye on real ones (docs/results/inside/patterns.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
from safetensors.torch import load
from torch import Tensor, nn

from litotes.analysis.patterns.classes import CLASSES
from litotes.analysis.patterns.grid import GRID, N_CHANNELS, on_grid

WEIGHTS = "patterns.safetensors"

_MAPS_AT_ONCE = 256  # their grids fit into a core's cache


@dataclass(frozen=True)
class Patterns:
    """What the network thinks of some maps: probabilities (map, class), classes in the order of CLASSES."""

    probabilities: Tensor

    @property
    def labels(self) -> list[str]:
        """The likeliest class of every map."""
        names = tuple(CLASSES)
        return [names[number] for number in self.probabilities.argmax(1).tolist()]


class PatternNetwork(nn.Module):
    """Grids (map, channel, GRID, GRID) → logits (map, class)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *_halving(N_CHANNELS + 1, 16),
            *_halving(16, 24),
            *_halving(24, 32),
            nn.Flatten(),
            nn.Linear(32 * (GRID // 8) ** 2, 48),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(48, len(CLASSES)),
        )
        place = torch.arange(GRID) / GRID
        self.register_buffer("distance", (place[:, None] - place[None, :]).abs(), persistent=False)  # (cell, cell)

    def forward(self, grids: Tensor) -> Tensor:
        distance = self.get_buffer("distance").expand(len(grids), 1, GRID, GRID)
        return self.layers(torch.cat([grids, distance], 1))


def _halving(n_in: int, n_out: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(n_in, n_out, 4, stride=2, padding=1), nn.ReLU()


@torch.inference_mode()
def classify(maps: Tensor) -> Patterns:
    """The patterns of attention maps of one length, standard or effective. maps: (map, query, key)

    Scaling a map by a positive number changes nothing, and a map's answer does not depend on the others.
    """
    network = shipped(str(maps.device))
    grids = [on_grid(part) for part in maps.split(_MAPS_AT_ONCE)]
    return Patterns(torch.cat([network(grid).softmax(1) for grid in grids]))


@cache
def shipped(device: str = "cpu") -> PatternNetwork:
    """The network with the weights of the package, which `python -m litotes.analysis.patterns.train` makes."""
    network = PatternNetwork()
    network.load_state_dict(load(files(__package__).joinpath(WEIGHTS).read_bytes()))
    return network.to(device).eval()
