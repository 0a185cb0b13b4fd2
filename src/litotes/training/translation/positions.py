"""Where a piece stands, as waves of many lengths.

    p[t, 2i] = sin(t / 10000^{2i/width})      p[t, 2i+1] = cos(t / 10000^{2i/width})

Vaswani et al. 2017 (arXiv 1706.03762), §3.5.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SLOWEST = 10_000.0


def sinusoids(n_positions: int, width: int) -> Tensor:
    """(position, width), as large as the embedding of a piece: there the paper multiplies pieces by
    √width, here waves are divided by it, and the norm that follows makes both the same.
    """
    places = torch.arange(n_positions, dtype=torch.float64)[:, None]
    steps = torch.arange(0, width, 2, dtype=torch.float64) / width
    angles = places * torch.exp(-math.log(SLOWEST) * steps)  # (position, width / 2, rounded up)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]
    return (waves / math.sqrt(width)).float()
