"""The shipped network and the rules: what they say of maps whose pattern is known, and what must
not change their minds.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.explanation.analyses.map_patterns import (
    CLASSES,
    GRID,
    by_rules,
    classify,
    map_features,
)
from reproduction.patterns import generate

N_EACH = 40
FLOOR = 0.85
"""Of every class; the shipped weights reach 0.94 and more on 400 maps each."""

PLAIN = {
    "vertical": lambda n: torch.eye(n)[:1].expand(n, n),
    "diagonal": torch.eye,
    "vertical+diagonal": lambda n: (torch.eye(n) + torch.eye(n)[:1]) / 2,
    "block": (
        lambda n: (
            torch.block_diag(torch.ones(n // 2, n // 2), torch.ones(n - n // 2, n - n // 2)) * 2 / n
        )
    ),
    "heterogeneous": (
        lambda n: torch.randn(n, n, generator=torch.Generator().manual_seed(n)).softmax(-1)
    ),
}


def segments_of(n: int) -> Tensor:
    return (torch.arange(n) >= n // 2).long()


@pytest.fixture(scope="module")
def made() -> list[tuple[Tensor, int]]:
    """Maps no training has seen."""
    return list(generate(N_EACH * len(CLASSES), seed=12345))


def test_generated_maps_are_recognised(made: list[tuple[Tensor, int]]) -> None:
    right = torch.zeros(len(CLASSES))
    for weights, number in made:
        right[number] += classify(weights[None]).probabilities.argmax() == number
    assert (right / N_EACH >= FLOOR).all(), right / N_EACH


@pytest.mark.parametrize("n", [24, 40, 64, 129, 512])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_maps_are_recognised(name: str, n: int) -> None:
    weights = PLAIN[name](n)
    assert classify(weights[None]).labels == [name]
    assert by_rules(weights, segments_of(n)) == name


def test_a_line_one_piece_wide_survives_any_length() -> None:
    columns, diagonals = (
        [map_features(PLAIN[name](n)[None]).grids[0, 0] for n in (GRID, 4 * GRID, 512)]
        for name in ("vertical", "diagonal")
    )
    for short, *long in (columns, diagonals):
        for grid in long:
            torch.testing.assert_close(grid, short)


@pytest.mark.parametrize("n", [33, 47, 100])
def test_the_grid_keeps_the_weight(n: int) -> None:
    weights = torch.rand(2, n, n).softmax(-1)
    density = map_features(weights).grids[:, 0].expm1()
    torch.testing.assert_close(density.mean((1, 2)), torch.ones(2))


def test_alone_as_among_others() -> None:
    maps = torch.stack([PLAIN[name](48) for name in PLAIN] * 60)  # more than are looked at together
    together = classify(maps).probabilities
    for place in (0, 2, 257, 299):
        torch.testing.assert_close(
            classify(maps[place : place + 1]).probabilities[0], together[place], atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("factor", [1e-6, 0.3, 1e6])
def test_the_scale_of_an_effective_map_says_nothing(
    factor: float, made: list[tuple[Tensor, int]]
) -> None:
    effective = [weights for weights, _ in made if (weights < 0).any()][:20]
    for weights in effective:
        torch.testing.assert_close(
            classify(weights[None] * factor).probabilities,
            classify(weights[None]).probabilities,
            atol=1e-4,
            rtol=0,
        )
        assert by_rules(weights * factor) == by_rules(weights)


def test_a_map_of_zeros_and_no_map_at_all() -> None:
    assert classify(torch.zeros(1, 40, 40)).probabilities.isfinite().all()
    assert by_rules(torch.zeros(40, 40)) == "heterogeneous"
    assert classify(torch.zeros(0, 40, 40)).probabilities.shape == (0, len(CLASSES))


@pytest.mark.parametrize("shape", [(5, 5), (2, 5, 6), (1, 2, 5, 5), (3, 0, 0)])
def test_wrong_shapes_are_told(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"\(map, query, key\)"):
        classify(torch.ones(shape))


def test_the_rules_tell_wrong_shapes() -> None:
    with pytest.raises(UserError, match="square"):
        by_rules(torch.ones(5, 6))
    with pytest.raises(UserError, match="one for each piece"):
        by_rules(torch.ones(5, 5), torch.zeros(4))


def test_numbers_that_are_none_are_told() -> None:
    with pytest.raises(UserError, match="not finite"):
        classify(torch.full((1, 8, 8), torch.nan))
