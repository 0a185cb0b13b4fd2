"""Rows held as pairs of halves against the plain path in float64."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import Case, all_rules, forward_error

from litotes.encoder.attention.weighting import RowRule
from litotes.encoder.simplex import entmax
from litotes.kernels.attention import Packed, attend
from litotes.kernels.tiles import HALVES, PAIRED, Tiles

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


def attended(
    rows: torch.Tensor, value: torch.Tensor, rule: RowRule, dtype: torch.dtype = torch.float16
) -> torch.Tensor:
    """What queries with these affinities mix from the values. (query, head_width)

    rows: (query, key), at most 16 queries and fewer than keys: query k asks the keys' k-th number.
    """
    n_queries, n_keys = rows.shape
    query, key = torch.zeros(n_queries, 16), torch.zeros(n_keys, 16)
    query[:, :n_queries] = 4 * torch.eye(n_queries)  # 4 / √16 is 1
    key[:, :n_queries] = rows.T
    bounds = [torch.tensor([0, n], dtype=torch.int32) for n in (n_queries, n_keys)]
    tiles = [Tiles(PAIRS, torch.zeros(1, 2, dtype=torch.int32).to(value.device))]
    packed = [tensor[:, None].to(value.device, dtype) for tensor in (query, key, value)]
    bounds = [some.to(value.device) for some in bounds]
    return attend(Packed(*packed, *bounds, tiles), rule).mixed[:, 0].float()


def rows_of(n_keys: int, spread: float, seed: int = 0) -> torch.Tensor:
    """Affinities that half precision shows. (query, key)"""
    draw = torch.Generator().manual_seed(seed)
    return (torch.randn(min(16, n_keys), n_keys, generator=draw) * spread).bfloat16().float()


def entmax_rule(alpha: float, device: torch.device) -> RowRule:
    if alpha == 1.5:
        return RowRule("squares")
    return RowRule("powers", alpha=torch.full((1,), alpha, device=device))


def entmax_error(rows: torch.Tensor, alpha: float, device: torch.device) -> float:
    value = torch.randn(rows.shape[1], 16, generator=torch.Generator().manual_seed(1))
    got = attended(rows, value.to(device), entmax_rule(alpha, device)).cpu()
    wanted = entmax(rows.double(), torch.tensor(alpha).double()) @ value.half().double()
    return (got - wanted).abs().max().item()


@pytest.mark.parametrize(
    ("alpha", "n_keys", "spread"),
    [
        *((alpha, n_keys, 2.0) for alpha in (1.3, 1.5) for n_keys in (1, 129)),
        *((alpha, 512, 8.0) for alpha in (1.004, 1.1, 1.26, 1.49, 1.51, 1.75, 2.0)),
        *((alpha, 512, 0.3) for alpha in (1.02, 1.24, 1.9)),
    ],
)
def test_entmax_of_any_alpha_and_length(
    alpha: float, n_keys: int, spread: float, device: torch.device
) -> None:
    assert entmax_error(rows_of(n_keys, spread), alpha, device) < CLOSE


@pytest.mark.parametrize("alpha", [1.05, 1.5, 1.6, 1.9])
def test_entmax_where_all_keys_but_the_best_are_equally_far(
    alpha: float, device: torch.device
) -> None:
    """There steps on logarithms fall short of the root, again and again."""
    rows = -torch.linspace(0.01, 1.2, 16)[:, None].bfloat16().float().repeat(1, 400)
    rows[:, 7] = 0.0
    assert entmax_error(rows, alpha, device) < CLOSE


@pytest.mark.parametrize("n_keys", [1, 129, 512])
def test_the_best_keys_of_texts_of_any_length(n_keys: int, device: torch.device) -> None:
    """With many equals of which some are too many: the later ones are left out, wherever they lie.

    The farther rows have the fewer different numbers; the first one, one alone.
    """
    rows = rows_of(n_keys, 1.0)
    for place in range(len(rows)):
        rows[place] = (rows[place] * place).round() / max(place, 1)
    rows = rows.bfloat16().float()
    value = torch.randn(n_keys, 16, generator=torch.Generator().manual_seed(1))
    rule, plain = all_rules(1, device)["top_k"]
    got = attended(rows, value.to(device), rule).cpu()
    wanted = plain.double()(rows.double()) @ value.half().double()
    torch.testing.assert_close(got.double(), wanted, atol=CLOSE, rtol=0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rule", PAIRED)
def test_one_infinite_affinity_spoils_its_row_alone(rule: str, device: torch.device) -> None:
    rows, value = rows_of(140, 1.0), torch.randn(140, 16).to(device)
    rows[3, 100] = torch.inf
    its_rule, _ = all_rules(1, device)[rule]
    mixed = attended(rows, value, its_rule)
    assert mixed[3].isnan().all()
