"""Random queries, keys and values of texts laid end to end, for benches of attention alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bench.entmax import SPREAD

if TYPE_CHECKING:  # its kernels need Triton
    from litotes.kernels.attention import Packed

N_ATTENTION_HEADS = 12
HEAD_WIDTH = 64


@dataclass(frozen=True)
class Inputs:
    """query, key, value: (piece, attention_head, head_width), of texts of these lengths."""

    query: Tensor
    key: Tensor
    value: Tensor
    lengths: tuple[int, ...]

    @classmethod
    def draw(
        cls, lengths: Sequence[int], seed: int, device: torch.device, dtype: torch.dtype
    ) -> Inputs:
        """Normal ones, such that affinities have the spread of fine-tuned encoders'."""
        generator = torch.Generator(device).manual_seed(seed)
        shape = (3, sum(lengths), N_ATTENTION_HEADS, HEAD_WIDTH)
        numbers = torch.randn(shape, generator=generator, device=device)
        numbers[:2] *= SPREAD**0.5
        query, key, value = numbers.to(dtype).unbind(0)
        return cls(query, key, value, tuple(lengths))

    def with_gradients(self) -> Inputs:
        """The same as leaves that want a gradient."""
        query, key, value = (tensor.detach().clone().requires_grad_() for tensor in self.all)
        return Inputs(query, key, value, self.lengths)

    @property
    def all(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.query, self.key, self.value

    def rows(self) -> tuple[Tensor, ...]:
        """The same as (text, attention_head, piece, head_width); texts of one length."""
        n_texts = len(self.lengths)
        return tuple(tensor.unflatten(0, (n_texts, -1)).transpose(1, 2) for tensor in self.all)

    def packed(self, block: int = 1, rule: str = "softmax", *, trains: bool = False) -> Packed:
        """For our kernels. block: how many neighbouring queries belong together. trains: with a
        backward pass.
        """
        from litotes.kernels.attention import Packed

        device = self.query.device
        ends = np.cumsum(self.lengths)
        bounds = torch.tensor([0, *ends], dtype=torch.int32, device=device)
        halves = self.query.dtype != torch.float32
        tiles = tiles_of(self.lengths, block, device, rule, trains=trains, halves=halves)
        return Packed(*self.all, bounds, bounds, tiles)


def tiles_of(
    lengths: Sequence[int],
    block: int,
    device: torch.device,
    rule: str,
    *,
    trains: bool,
    halves: bool,
) -> list[Any]:
    from litotes.kernels.tiles import Tiles, shapes_for, tile_numbers

    counts = np.array(lengths, dtype=np.int32)
    shapes = shapes_for(rule, max(lengths), trains=trains, halves=halves)
    numbers = tile_numbers(counts, counts, shapes, shift=block - 1)
    tiles = []
    for shape, own in zip(shapes, numbers, strict=True):
        tiles.append(Tiles(shape, torch.from_numpy(own).to(device)))
    return tiles


def n_slots(tiles: Sequence[Any]) -> int:
    """The most tiles that a text has."""
    return max(int(one.numbers[:, 1].max()) + 1 for one in tiles if len(one.numbers))
