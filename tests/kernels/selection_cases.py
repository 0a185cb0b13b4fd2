"""Texts that lose pieces, for the tests of selection on the device.

Imported before any kernel: Triton asks for its interpreter when a kernel is declared.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

N_HEADS, WIDTH = 3, 40
N_EMPTY, SPARE = 2, 37
"""Empty texts at the end, and rows of nobody that the tensors have besides."""


def bounds_of(lengths: list[int]) -> Tensor:
    """Boundaries of texts, some empty ones after them. (text + 1,)"""
    counts = torch.tensor([0, *lengths, *[0] * N_EMPTY])
    return counts.cumsum(0).to(torch.int32).to(DEVICE)


def counts_of(numbers: list[int]) -> Tensor:
    """One number for each text, the empty ones included. (text,)"""
    return torch.tensor([*numbers, *[0] * N_EMPTY], dtype=torch.int32).to(DEVICE)


def with_spare(rows: Tensor, value: float = torch.nan) -> Tensor:
    """More rows than the texts need, which nobody may read."""
    spare = rows.new_full(
        (SPARE, *rows.shape[1:]), int(value) if not rows.is_floating_point() else value
    )
    return torch.cat([rows, spare]).to(DEVICE)


@dataclass(frozen=True)
class Received:
    """by_slot: as the kernel writes it, NaN where it writes nothing. total: by piece and head."""

    by_slot: Tensor
    n_tiles: Tensor
    total: Tensor


def receive(lengths: list[int], n_slots: int, *, most: int = 3) -> Received:
    """Whole numbers: sums are exact in any order, and many are equal."""
    n_pieces = sum(lengths)
    n_tiles = torch.randint(1, n_slots + 1, (len(lengths),))
    written = torch.arange(n_slots)[:, None] < n_tiles.repeat_interleave(torch.tensor(lengths))
    numbers = torch.randint(0, most, (n_slots, N_HEADS, n_pieces)).float()
    total = (numbers * written[:, None]).sum(0).T  # (piece, attention_head)
    numbers = numbers.masked_fill(~written[:, None], torch.nan)
    by_slot = with_spare(numbers.movedim(2, 0)).movedim(0, 2).contiguous()
    return Received(by_slot, counts_of(n_tiles.tolist()), total)


def origins(lengths: list[int]) -> Tensor:
    return torch.cat([torch.arange(n) for n in lengths]).to(torch.int32)
