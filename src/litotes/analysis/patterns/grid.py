"""Maps of any length on one grid, so that thin lines survive.

    density = n · A / (mean over queries of Σ_key |A|)        (query, key): 1 everywhere where a map is even
    cell    = mean of the density over the cell's area         pieces that a cell's border cuts count in part

A mean over an area keeps the weight: a column or a diagonal one piece wide comes out of 512 pieces as strong as out of 32, where a sample
could miss it; below 32 pieces cells repeat. Densities spread over orders of magnitude, so the network sees ±log(1 + |cell|), once of the
density with its sign, where noise cancels, and once without, where stripes of both signs stay.
"""

from __future__ import annotations

import torch
from torch import Tensor

from litotes.errors import UserError

GRID = 32
N_CHANNELS = 2


def on_grid(maps: Tensor) -> Tensor:
    """(map, query, key) → (map, channel, GRID, GRID)"""
    if maps.dim() != 3 or maps.shape[1] != maps.shape[2] or not maps.shape[1]:
        raise UserError(f"Maps of shape {tuple(maps.shape)} have no patterns to tell: give (map, query, key), as many keys as queries.")
    n = maps.shape[1]
    maps = maps.float()
    unsigned = maps.abs()
    scale = unsigned.mean((1, 2)) * n  # (map,): the weight of a row
    if not bool(scale.isfinite().all()):
        raise UserError("A map holds numbers that are not finite: look for the text or the layer that made them.")
    share = _overlap(n, maps.device)  # (cell, piece)
    both = torch.stack([maps, unsigned], 1)  # (map, channel, query, key)
    cells = share @ both @ share.T  # (map, channel, cell, cell)
    density = cells * (n / scale.clamp(min=torch.finfo(torch.float32).tiny)).view(-1, 1, 1, 1)
    return density.sign() * density.abs().log1p()


def _overlap(n: int, device: torch.device) -> Tensor:
    """What part of each cell every piece covers; the rows sum to 1. (cell, piece)"""
    edges = torch.arange(GRID + 1, device=device, dtype=torch.float64) * n / GRID
    pieces = torch.arange(n, device=device, dtype=torch.float64)
    covered = torch.minimum(edges[1:, None], pieces + 1) - torch.maximum(edges[:-1, None], pieces)
    return (covered.clamp(min=0) * GRID / n).float()
