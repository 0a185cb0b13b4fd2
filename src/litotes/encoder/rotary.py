"""Rotary positions: queries and keys are turned by where they stand, so that their product knows
how far apart they are. Su et al. 2021, arXiv 2104.09864, §3.2.

    x'_j         = x_j cos(p ω_j) − x_{j+d/2} sin(p ω_j)
    x'_{j+d/2}   = x_{j+d/2} cos(p ω_j) + x_j sin(p ω_j)        ω_j = θ^{−2j/d},  j = 0 … d/2 − 1

for a piece at place p and an attention head of width d. Both are turned, and only the difference of
their angles is left: q'·k' depends on p_q − p_k alone. ModernBERT (Warner et al. 2024, arXiv
2412.13663, §2.1) has one θ for layers that read the whole text and a smaller one for local layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Turn:
    """The angles of each piece as cosines and sines, (piece, 1, head_width / 2)."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def of(cls, places: Tensor, base: float, head_width: int) -> Turn:
        """places: (piece,). base: θ."""
        halves = torch.arange(0, head_width, 2, dtype=torch.float32, device=places.device)
        speeds = 1.0 / base ** (halves / head_width)
        angles = (places[:, None].float() * speeds)[:, None]  # (piece, 1, head_width / 2)
        return cls(angles.cos(), angles.sin())

    def select(self, pieces: Tensor) -> Turn:
        return Turn(self.cos[pieces], self.sin[pieces])

    def __call__(self, values: Tensor) -> Tensor:
        """Queries or keys, turned. (piece, attention_head, head_width)"""
        first, second = values.chunk(2, dim=-1)
        turned = (first * self.cos - second * self.sin, second * self.cos + first * self.sin)
        return torch.cat(turned, dim=-1).to(values.dtype)
