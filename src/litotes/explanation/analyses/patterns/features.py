"""What the network sees of a map of any length: the map on one grid, so that thin lines survive,
and shares of its weight in full detail.

    density = A / (mean of |A|)                 (query, key): 1 everywhere where a map is even
    cell    = mean of the density over the area of the cell, to which a piece on its border
              counts in part

A mean over an area keeps the weight: a column or a diagonal one piece wide comes out of 512 pieces
as strong as out of 32, where a sample could miss it; below 32 pieces cells repeat. Densities spread
over orders of magnitude, so the network sees ±log(1 + |cell|), once of the density with its sign,
where noise cancels, and once without, where stripes of both signs stay.

A cell does not show how few pieces hold its weight. So with the grid go shares of |A|, 0 by chance
and 1 at most: in the strongest columns (one, two, then n/64 to n/4 of them), in columns that keep
their sign, and near the diagonal (0 to n/8 away).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.core.errors import UserError

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
    """What part of each cell every piece covers; the rows sum to 1. (cell, piece)"""
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
