"""Which of five patterns an attention map has (Kovaleva et al. 2019, arXiv 1908.08593, §4.1): a
small network's opinion, and one by written rules.

>>> import torch
>>> classify(torch.eye(64)[None]).labels
['diagonal']
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.errors import UserError

VERTICAL = "vertical"
DIAGONAL = "diagonal"
BOTH = "vertical+diagonal"
BLOCK = "block"
HETEROGENEOUS = "heterogeneous"

CLASSES: dict[str, str] = {
    VERTICAL: "most queries look at the same few keys: [CLS], [SEP], punctuation",
    DIAGONAL: "every query looks at itself or at its neighbours",
    BOTH: "a few shared keys, and next to them the neighbours",
    BLOCK: "every query looks at its own text of a pair, or its own sentence",
    HETEROGENEOUS: "none of these: it depends on what the words mean",
}
"""Every class with its meaning, in the order of all probabilities."""


# What the network sees of a map of any length: the map on one grid, so that thin lines survive,
# and shares of its weight in full detail.
#
#     density = A / (mean of |A|)                 (query, key): 1 everywhere where a map is even
#     cell    = mean of the density over the area of the cell, to which a piece on its border
#               counts in part
#
# A mean over an area keeps the weight: a column or a diagonal one piece wide comes out of 512
# pieces as strong as out of 32, where a sample could miss it; below 32 pieces cells repeat.
# Densities spread over orders of magnitude, so the network sees ±log(1 + |cell|), once of the
# density with its sign, where noise cancels, and once without, where stripes of both signs stay.
#
# A cell does not show how few pieces hold its weight. So with the grid go shares of |A|, 0 by
# chance and 1 at most: in the strongest columns (one, two, then n/64 to n/4 of them), in columns
# that keep their sign, and near the diagonal (0 to n/8 away).

GRID = 32
N_CHANNELS = 2

_COLUMNS = (64, 32, 16, 8, 4)  # n divided by these, two at least; and one alone
_WIDTHS = (64, 32, 16, 8)  # n divided by these, one at least; and the diagonal alone
N_SHARES = 2 * (1 + len(_COLUMNS)) + 1 + len(_WIDTHS)


@dataclass(frozen=True)
class MapFeatures:
    """grids: (map, channel, GRID, GRID); shares: (map, N_SHARES)."""

    grids: Tensor
    shares: Tensor


def map_features(maps: Tensor) -> MapFeatures:
    """The features of maps (map, query, key), whatever their scale."""
    if maps.dim() != 3 or maps.shape[1] != maps.shape[2] or not maps.shape[1]:
        raise UserError(
            f"Maps of shape {tuple(maps.shape)} have no patterns to tell: give (map, query, key),"
            " as many keys as queries."
        )
    maps = maps.float()
    even = maps.abs().mean((1, 2), keepdim=True)  # every weight of a map that is even
    if not bool(even.isfinite().all()):
        raise UserError(
            "A map holds numbers that are not finite: look for the text or the layer that made"
            " them."
        )
    density = maps / even.clamp(min=torch.finfo(torch.float32).tiny)  # (map, query, key)
    shares = torch.cat([_in_columns(density), _near_diagonal(density)], 1)
    return MapFeatures(_on_grid(density), shares)


def _on_grid(density: Tensor) -> Tensor:
    """(map, channel, GRID, GRID)"""
    overlap = _overlap(density.shape[1], density.device)  # (cell, piece)
    both = torch.stack([density, density.abs()], 1)  # (map, channel, query, key)
    cells = overlap @ both @ overlap.T  # (map, channel, cell, cell)
    return cells.sign() * cells.abs().log1p()


def _overlap(n: int, device: torch.device) -> Tensor:
    """Computes what part of each cell every piece covers; the rows sum to 1. (cell, piece)"""
    edges = torch.arange(GRID + 1, device=device, dtype=torch.float32) * n / GRID
    pieces = torch.arange(n, device=device, dtype=torch.float32)
    covered = torch.minimum(edges[1:, None], pieces + 1) - torch.maximum(edges[:-1, None], pieces)
    return covered.clamp(min=0) * GRID / n


def _in_columns(density: Tensor) -> Tensor:
    """The weight in the strongest columns, once by |A|, once by |sum of A|. (map, share)"""
    n = density.shape[1]
    sizes = [1, *(min(max(2, n // part), n) for part in _COLUMNS)]
    counts = torch.tensor(sizes, device=density.device)
    columns = torch.stack([density.abs().mean(1), density.mean(1).abs()], 1) / n  # (map, 2, key)
    summed = columns.sort(2, descending=True).values.cumsum(2)
    return _excess(summed[:, :, counts - 1], counts / n).flatten(1)  # (map, 2, count)


def _near_diagonal(density: Tensor) -> Tensor:
    """The weight of keys no farther from their query than each width. (map, share)"""
    n = density.shape[1]
    place = torch.arange(n, device=density.device)
    distance = (place[:, None] - place[None, :]).abs()  # (query, key)
    widths = torch.tensor([0, *(max(1, n // part) for part in _WIDTHS)], device=density.device)
    near = (distance <= widths[:, None, None]).float().flatten(1)  # (width, query × key)
    return _excess(density.abs().flatten(1) @ near.T / n**2, near.mean(1))


def _excess(share: Tensor, chance: Tensor) -> Tensor:
    """Nothing is in excess where chance has it all."""
    return torch.where(chance < 1, (share - chance) / (1 - chance).clamp(min=1e-6), 0.0)


# A small ConvNet that recognises the pattern of an attention map.
#
# Three convolutions, each halving the grid, then what is left in 4 × 4 places together with the
# shares above:
#
#     grid (2, 32, 32) and the distance of each cell from the diagonal
#         → (16, 16, 16) → (24, 8, 8) → (32, 4, 4), 17 shares → 48 → 5 classes
#
# Kovaleva et al. 2019 (arXiv 1908.08593, §4.1) trained theirs on 400 labelled maps of BERT; this
# one learns from random maps alone (reproduction/patterns) and was checked against labels by eye on
# real ones (docs/results/effective-attention.md).

WEIGHTS = Path(__file__).with_name("patterns.safetensors")

_WEIGHTS_AT_ONCE = 2**20  # 4 MB: maps classified together stay in a core's cache


@dataclass(frozen=True)
class Patterns:
    """The network's judgement of some maps: probabilities (map, class), classes in the order of
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
    network.load_state_dict(load(WEIGHTS.read_bytes()))
    return network.to(device).eval()


# A second opinion on the pattern of an attention map: three shares of its weight, and three
# thresholds.
#
# With m = |map| scaled to a sum of 1 and excess(share, chance) = (share - chance) / (1 - chance):
#
#     columns  = excess of the weight in the strongest tenth of the columns
#     diagonal = excess of the weight where |query - key| ≤ n/16 (or 1)
#     blocks   = excess, of the weight outside of both, between pieces of the same text of a pair
#
# 0 is what an even map has, 1 all the weight. The thresholds were set before any map was labelled
# (docs/results/effective-attention.md).

ENOUGH_IN_COLUMNS = 0.25
ENOUGH_ON_DIAGONAL = 0.15  # two even blocks have 0.14
ENOUGH_IN_BLOCKS = 0.3

_STRONGEST = 10  # one column in ten
# neighbours are a sixteenth of the text apart at most: phrases as well as the next piece
_NEAR = 16
_FEWEST = 2  # but two at least: [CLS] and [SEP] of a short text


@dataclass(frozen=True)
class Evidence:
    """The evidence for each pattern: 0 is chance, 1 all the weight."""

    columns: float
    diagonal: float
    blocks: float


def by_rules(weights: Tensor, segments: Tensor | None = None) -> str:
    """The pattern of one map (query, key), standard or effective.

    segments: which text of a pair each piece belongs to, (piece,); without it a map cannot be
    called block.
    """
    found = evidence(weights, segments)
    has_columns = found.columns >= ENOUGH_IN_COLUMNS
    has_diagonal = found.diagonal >= ENOUGH_ON_DIAGONAL
    if has_columns:
        return BOTH if has_diagonal else VERTICAL
    if has_diagonal:
        return DIAGONAL
    return BLOCK if found.blocks >= ENOUGH_IN_BLOCKS else HETEROGENEOUS


def evidence(weights: Tensor, segments: Tensor | None = None) -> Evidence:
    """The three shares of one map (query, key)."""
    n = len(weights)
    if weights.shape != (n, n) or (segments is not None and segments.shape != (n,)):
        raise UserError(
            f"A map of shape {tuple(weights.shape)} cannot be judged: give one square (query, key),"
            " and of segments one for each piece."
        )
    share = weights.abs().double()
    share = share / share.sum().clamp(min=1e-30)  # (query, key)
    place = torch.arange(n, device=weights.device)
    groups = torch.zeros_like(place) if segments is None else segments
    near = (place[:, None] - place).abs() <= max(1, n // _NEAR)
    # the weight of every column as far as all texts of a pair look at it: what only one of them
    # looks at is part of a block
    by_group = [share[groups == group].mean(0) for group in groups.unique()]
    shared = torch.stack(by_group).amin(0) * n  # (key,)
    columns = shared.topk(min(max(_FEWEST, n // _STRONGEST), n))
    elsewhere = ~near  # (query, key): neither near the diagonal nor in a strong column
    elsewhere[:, columns.indices] = False
    return Evidence(
        columns=_excess_of(columns.values.sum(), torch.tensor(len(columns.indices) / n)),
        diagonal=_excess_of((share * near).sum(), near.double().mean()),
        blocks=_within_groups(share, groups, elsewhere),
    )


def _within_groups(share: Tensor, groups: Tensor, elsewhere: Tensor) -> float:
    """The excess of weight between pieces of the same text, among the places `elsewhere`."""
    n_places, weight = elsewhere.sum(), (share * elsewhere).sum()
    if not n_places or not weight:
        return 0.0
    both = elsewhere & (groups[:, None] == groups)
    return _excess_of((share * both).sum() / weight, both.sum().double() / n_places)


def _excess_of(share: Tensor, chance: Tensor) -> float:
    return float(_excess(share, chance.double()))
