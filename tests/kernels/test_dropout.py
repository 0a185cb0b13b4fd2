"""Numbers that dropout draws, in Triton's interpreter or on a GPU: as even and as independent as
chance.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

import triton
import triton.language as tl

from litotes.kernels.forward_kernels import keeps_weight

N_ROWS, N_KEYS, N_HEADS = 256, 512, 4
DROPOUT = 0.1
DEVIATIONS = 5.0
"""How far a share may lie from what is expected: once in 1.7 million by chance."""


@triton.jit
def draw(SEED, KEPT, dropout, N_HEADS: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Programs: (attention_head,). KEPT: (attention_head, row, key)"""
    head = tl.program_id(0)
    row, key = tl.arange(0, ROWS), tl.arange(0, KEYS)
    kept = keeps_weight(SEED, row[:, None], key[None, :], head, dropout, N_HEADS)
    place = (head * ROWS + row)[:, None] * KEYS + key[None, :]
    tl.store(KEPT + place, kept.to(tl.int8))


def kept_with(seed: int, device: torch.device, dropout: float = DROPOUT) -> Tensor:
    """(attention_head, row, key)"""
    kept = torch.zeros(N_HEADS, N_ROWS, N_KEYS, dtype=torch.int8, device=device)
    where = torch.tensor([seed], device=device)
    draw[(N_HEADS,)](where, kept, dropout, N_HEADS=N_HEADS, ROWS=N_ROWS, KEYS=N_KEYS)
    return kept.double().cpu()


@pytest.fixture(scope="module")
def kept(device: torch.device) -> Tensor:
    return kept_with(2**40 + 7, device)


def far(share: Tensor, expected: float, n: int) -> Tensor:
    """Standard deviations from what is expected of n draws that are independent."""
    return (share - expected).abs() / (expected * (1 - expected) / n) ** 0.5


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.9])
def test_the_share_is_the_one_asked_for(dropout: float, device: torch.device) -> None:
    share = kept_with(3, device, dropout).mean()
    assert dropout > 0 or share == 1
    assert dropout == 0 or far(share, 1 - dropout, N_HEADS * N_ROWS * N_KEYS) < DEVIATIONS


@pytest.mark.parametrize("step", [1, 2, 3, 64])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_neighbours_are_independent(axis: int, step: int, kept: Tensor) -> None:
    if step >= kept.shape[axis]:
        return
    n = kept.shape[axis] - step
    both = kept.narrow(axis, 0, n) * kept.narrow(axis, step, n)
    assert far(both.mean(), (1 - DROPOUT) ** 2, both.numel()) < DEVIATIONS


@pytest.mark.parametrize("other", [2**40 + 8, 7, 2**41 + 7])
def test_another_seed_draws_anew(other: int, kept: Tensor, device: torch.device) -> None:
    again = kept_with(2**40 + 7, device)
    assert torch.equal(again, kept)
    both = kept * kept_with(other, device)
    assert far(both.mean(), (1 - DROPOUT) ** 2, both.numel()) < DEVIATIONS


def test_no_two_rows_are_alike(kept: Tensor) -> None:
    rows = kept.flatten(0, 1)  # (row, key)
    centred = rows - (1 - DROPOUT)
    alike = centred @ centred.T / (N_KEYS * DROPOUT * (1 - DROPOUT))
    alike.fill_diagonal_(0.0)
    # half a million pairs of 512 draws: six standard deviations by chance once in a thousand runs
    assert alike.abs().max() < 7 / N_KEYS**0.5
