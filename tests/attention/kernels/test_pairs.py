"""Rows held as pairs of halves against the plain path in float64."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import Case, all_rules, forward_error

from litotes.attention.kernels.forward import Packed, attend
from litotes.attention.kernels.tiles import HALVES, PAIRED, Tiles

CLOSE = 5e-3
PAIRS = HALVES[3]


@pytest.mark.parametrize("rule", ["squares", "learned", "top_k"])
def test_mixes_as_the_plain_path_does(rule: str, device: torch.device) -> None:
    n_heads = 2 if rule == "learned" else 1
    case = Case(rule, lengths=(260,), n_heads=n_heads, wanted="received", halves=True)
    assert forward_error(case, device, torch.float16) < 10 * CLOSE  # received: sums of 300 weights


def test_all_that_may_be_asked_at_once(device: torch.device) -> None:
    case = Case(
        "squares",
        lengths=(257, 3),
        head_width=20,
        with_bias=True,
        alive=(0b10, 0b01),
        n_nobody=5,
        wanted="value",
        halves=True,
    )
    assert forward_error(case, device, torch.float16) < 20 * CLOSE


def mixed_of(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rule: str
) -> torch.Tensor:
    """One text of one attention head by this kernel, whatever its length. (piece, head_width)"""
    n_pieces, device = len(query), query.device
    bounds = torch.tensor([0, n_pieces], dtype=torch.int32, device=device)
    numbers = torch.tensor([[0, slot] for slot in range(-(-n_pieces // 64))], device=device)
    packed = [tensor[:, None].half() for tensor in (query, key, value)]
    tiles = [Tiles(PAIRS, numbers.int())]
    its_rule, _ = all_rules(1, device)[rule]
    return attend(Packed(*packed, bounds, bounds, tiles), its_rule).mixed[:, 0].float()


@pytest.mark.parametrize("n_pieces", [1, 130])
def test_equal_keys_are_chosen_from_the_first(n_pieces: int, device: torch.device) -> None:
    query, key, value = torch.randn(3, n_pieces, 16, device=device)
    mixed = mixed_of(query, key[:1].repeat(n_pieces, 1), value, "top_k")
    kept = value[: -(-n_pieces // 2)].mean(0)
    torch.testing.assert_close(mixed, kept.expand_as(mixed), atol=CLOSE, rtol=0.0)


@pytest.mark.parametrize("rule", PAIRED)
def test_a_shift_of_all_affinities_changes_nothing(rule: str, device: torch.device) -> None:
    """Far from 0 half precision is coarse; these affinities are whole numbers, which it shows."""
    n_pieces = 40
    key = torch.zeros(n_pieces, 16, device=device)
    key[:, 0] = torch.arange(n_pieces, device=device) % 5
    key[:, 1] = 100.0
    near, far = torch.zeros(2, n_pieces, 16, device=device)
    near[:, 0], far[:, 0], far[:, 1] = 4.0, 4.0, 4.0
    value = torch.randn(n_pieces, 16, device=device)
    torch.testing.assert_close(
        mixed_of(far, key, value, rule), mixed_of(near, key, value, rule), atol=1e-3, rtol=0.0
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rule", PAIRED)
def test_one_key_that_is_not_a_number_spoils_the_text(rule: str, device: torch.device) -> None:
    query, key, value = torch.randn(3, 9, 16, device=device)
    key[3] = torch.nan
    assert mixed_of(query, key, value, rule).isnan().all()
