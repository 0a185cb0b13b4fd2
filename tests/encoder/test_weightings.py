"""The contract of every weighting: a new entry of the table is tested before its author writes a
test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from made_weightings import SETTINGS, make_weighting, name_of

from litotes.core.registry import build, options_of
from litotes.encoder.attention import WEIGHTINGS, Weighting
from litotes.encoder.layout import Layout
from litotes.encoder.torch_operations import Rows

HEADS = 3


@pytest.fixture(params=SETTINGS, ids=name_of)
def weighting(request: pytest.FixtureRequest) -> Weighting:
    return make_weighting(request.param, HEADS)


@pytest.fixture(params=[True, False], ids=["training", "evaluation"])
def mode(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def affinity_of(
    *shape: int, dtype: torch.dtype = torch.float32, scale: float = 3.0
) -> torch.Tensor:
    return (
        torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(
            dtype
        )
        * scale
    )


def live_keys(lengths: list[int], n_keys: int) -> torch.Tensor:
    return (torch.arange(n_keys) < torch.tensor(lengths)[:, None])[:, None, None, :]


def test_weights_are_a_distribution_over_live_keys(weighting: Weighting, mode: bool) -> None:
    weighting.train(mode)
    live = live_keys([1, 4, 7], 7)
    weights = weighting(affinity_of(3, HEADS, 5, 7), live)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, HEADS, 5))
    assert (weights[~live.expand_as(weights)] == 0).all()


def test_live_keys_may_differ_from_query_to_query(weighting: Weighting, mode: bool) -> None:
    """Local layers: a query reads its neighbours. Here and there one has only itself."""
    weighting.train(mode)
    apart = (torch.arange(16)[:, None] - torch.arange(16)).abs()
    live = (apart <= torch.arange(16)[:, None] % 3)[None, None]
    weights = weighting(affinity_of(1, HEADS, 16, 16), live)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, HEADS, 16))
    assert (weights[~live.expand_as(weights)] == 0).all()


def test_dead_keys_equal_a_shorter_row(weighting: Weighting, mode: bool) -> None:
    weighting.train(mode)
    affinity = affinity_of(1, HEADS, 4, 9)
    masked = weighting(affinity, live_keys([6], 9))
    torch.testing.assert_close(masked[..., :6], weighting(affinity[..., :6]))


def test_a_row_without_live_keys_has_no_weight(weighting: Weighting) -> None:
    weights = weighting(affinity_of(1, HEADS, 2, 3), live_keys([0], 3))
    assert (weights == 0).all()


@pytest.mark.slow
def test_gradient(weighting: Weighting) -> None:
    weighting.double()
    affinity = affinity_of(1, HEADS, 2, 5, dtype=torch.float64, scale=1.0).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: weighting(x, live_keys([4], 5)), (affinity,))


def test_gradient_of_its_parameters(weighting: Weighting) -> None:
    weighting.double()
    affinity = affinity_of(2, HEADS, 2, 5, dtype=torch.float64, scale=1.0)
    for name, parameter in weighting.named_parameters():

        def weights(values: torch.Tensor, name: str = name) -> torch.Tensor:
            return torch.func.functional_call(
                weighting, {name: values}, (affinity, live_keys([4, 5], 5))
            )

        assert torch.autograd.gradcheck(weights, (parameter.detach().clone().requires_grad_(),))


def test_some_attention_heads_are_weighted_as_among_all(weighting: Weighting, mode: bool) -> None:
    """Each text may have kept other heads."""
    weighting.train(mode)
    affinity, live = affinity_of(2, HEADS, 4, 6), live_keys([6, 5], 6)
    heads = torch.tensor([[0, 2], [1, 2]])
    texts = torch.arange(2)[:, None]
    torch.testing.assert_close(
        weighting(affinity[texts, heads], live, heads), weighting(affinity, live)[texts, heads]
    )


def test_the_first_row_alone_is_the_first_row_of_all(weighting: Weighting, mode: bool) -> None:
    """The encoder computes only this row in its last layer where a head reads nothing else."""
    weighting.train(mode)
    affinity, live = affinity_of(3, HEADS, 9, 9), live_keys([9, 4, 1], 9)
    torch.testing.assert_close(
        weighting(affinity[:, :, :1], live), weighting(affinity, live)[:, :, :1]
    )


def test_a_decoder_may_use_it_if_it_says_so(weighting: Weighting, mode: bool) -> None:
    """A decoder's rows are computed one by one: none may depend on those after it."""
    if not weighting.rows_alone:
        return
    weighting.train(mode)
    affinity = affinity_of(2, HEADS, 9, 9)
    live = torch.ones(9, 9, dtype=torch.bool).tril()[None, None]  # a piece reads those before it
    weights = weighting(affinity, live)
    for row in range(9):
        only = slice(row, row + 1)
        torch.testing.assert_close(
            weighting(affinity[:, :, only], live[:, :, only]), weights[:, :, only]
        )


@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_attention_heads_come_first_in_its_parameters(name: str, options: dict[str, Any]) -> None:
    """Where heads are removed for good, their part of a parameter is found by this axis."""
    few, many = (build(WEIGHTINGS, name, "weighting", n, options=options) for n in (3, 4))
    for of_few, of_many in zip(few.parameters(), many.parameters(), strict=True):
        if of_few.shape != of_many.shape:
            assert of_few.shape[0] == 3
            assert of_many.shape == (4, *of_few.shape[1:])


def test_kernels_are_told_by_the_class_that_defines_it(weighting: Weighting) -> None:
    """A subclass with a `forward` of its own would inherit a rule that computes another weighting,
    and only a GPU would show it.
    """
    defined_by = {}
    for name in ("forward", "row_rule"):
        defined_by[name] = next(kind for kind in type(weighting).__mro__ if name in vars(kind))
    assert defined_by["row_rule"] in (defined_by["forward"], Weighting)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_finite_in_half_precision(weighting: Weighting, dtype: torch.dtype) -> None:
    weights = weighting(affinity_of(2, HEADS, 4, 6, dtype=dtype, scale=100.0), live_keys([2, 6], 6))
    assert weights.isfinite().all()
    torch.testing.assert_close(weights.float().sum(-1), torch.ones(2, HEADS, 4), atol=2e-2, rtol=0)


def test_attend_equals_its_definition(weighting: Weighting, mode: bool) -> None:
    """A fused `attend` must be what `forward` says, with and without bias and dead keys."""
    weighting.train(mode)
    query, key, value = (affinity_of(2, HEADS, 6, 8, scale=s) for s in (1.0, 1.3, 0.7))
    live, bias = live_keys([3, 6], 6), affinity_of(1, HEADS, 6, 6)
    for case in ({}, {"live": live}, {"bias": bias}, {"live": live, "bias": bias}):
        expected = Weighting.attend(weighting, query, key, value, **case)
        torch.testing.assert_close(
            weighting.attend(query, key, value, **case), expected, atol=1e-5, rtol=1e-5
        )


def test_the_weighting_seen_by_a_text_does_not_depend_on_its_batch_mates(
    weighting: Weighting, mode: bool
) -> None:
    weighting.train(mode)
    lengths = (5, 1, 3, 14)
    packed = affinity_of(sum(lengths), HEADS, 8)
    alone = Rows(Layout.of(lengths), apart=True)
    together = Rows(Layout.of(lengths), apart=False)
    mixed = []
    for rows in (alone, together):
        blocks = zip(rows.split(packed), rows.live, strict=True)
        mixed.append(
            rows.join([weighting.attend(block, block, block, live=live) for block, live in blocks])
        )
    torch.testing.assert_close(mixed[0], mixed[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_its_page_names_it_and_its_options(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "weightings.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith(f"| `{name}`")]
    assert len(rows) == 1
    _, _, _, options, _ = rows[0].split("|")
    for option in options_of(WEIGHTINGS[name]):
        assert f"`{option}`" in options


@pytest.mark.parametrize("apart", [True, False])
def test_rows_split_and_join_are_inverse(apart: bool) -> None:
    rows = Rows(Layout.of((4, 1, 2)), apart=apart)
    packed = torch.randn(7, HEADS, 8)
    torch.testing.assert_close(rows.join(rows.split(packed)), packed)
