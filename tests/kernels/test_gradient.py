"""The gradient of attention by the kernels, each way it is computed, against autograd through the
plain path in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import (
    RULES,
    Case,
    all_rules,
    gradient_error,
    heads_for,
    make_inputs,
    relative_gap,
    run_kernels,
    tiles_of,
)

from litotes.encoder.attention.weighting import LONGEST, RowRule
from litotes.kernels import attention, tiles
from litotes.kernels.attention import Packed, Wanted, packed_attention
from litotes.kernels.tiles import HALVES, PAIRED_IN_TRAINING, WHOLE, shapes_for

HALF = torch.float16
PAIRS = HALVES[3]

# an infinity less an infinity is NaN, and what overflows does so on purpose
MEANT = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@dataclass(frozen=True)
class Way:
    """walks_beyond: texts that are longer are walked. halves: rows are held as pairs of halves."""

    dtype: torch.dtype
    close: float
    rules: Sequence[str]
    lengths: tuple[int, ...]
    walks_beyond: int = LONGEST
    halves: bool = False

    def case(self, rule: str, lengths: Sequence[int], **options: Any) -> Case:
        quarters = self.halves and rule == "top_k" and options.get("head_width", 32) in (16, 64)
        return Case(rule, lengths, halves=self.halves, quarters=quarters, **options)

    def error(self, case: Case, device: torch.device, **options: Any) -> float:
        """As a share of what it may be."""
        return gradient_error(case, device, self.dtype, **options) / self.close


WAYS = {
    "whole": Way(torch.float32, 2e-5, RULES, (1, 33)),
    "whole halves": Way(HALF, 3e-3, RULES, (1, 33)),
    "walked": Way(HALF, 3e-3, RULES, (1, 17, 129), walks_beyond=0),
    "pairs": Way(HALF, 3e-3, PAIRED_IN_TRAINING, (1, 17, 128), 64, halves=True),
}
RULES_OF_WAYS = [(name, rule) for name, way in WAYS.items() for rule in way.rules]
EVERY_RULE = pytest.mark.parametrize(("way", "rule"), RULES_OF_WAYS, indirect=["way"])
EVERY_WAY = pytest.mark.parametrize("way", WAYS, indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    """For texts of any length: short ones are quicker to try."""
    chosen = WAYS[request.param]
    monkeypatch.setattr(attention, "WALKS_BEYOND", chosen.walks_beyond)
    if chosen.halves:
        monkeypatch.setattr(tiles, "HALVES", (PAIRS, WHOLE[-1]))
    return chosen


def pulled(case: Case, device: torch.device, dtype: torch.dtype, **changes: float) -> torch.Tensor:
    """The gradient of queries, keys and values. bad: what the fifth piece is made of."""
    inputs = make_inputs(case, device, dtype)
    if "bad" in changes:
        inputs.stacked.detach()[4] = changes["bad"]
    rule, _ = all_rules(case.n_heads, device)[case.rule]
    run_kernels(case, inputs, rule).mixed.square().sum().backward()
    assert inputs.stacked.grad is not None
    return inputs.stacked.grad


@EVERY_RULE
def test_follows_autograd(way: Way, rule: str, device: torch.device) -> None:
    case = way.case(rule, way.lengths, n_heads=heads_for(rule), head_width=16)
    assert way.error(case, device) < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "rule", "length"),
    [
        ("whole", "block_top_k", 140),
        ("whole", "squares", 1024),
        ("walked", "learned", 513),
        ("walked", "top_k", 1024),
        *(("pairs", rule, length) for rule in PAIRED_IN_TRAINING for length in (512, 513)),
    ],
    indirect=["way"],
)
def test_long_texts(
    way: Way, rule: str, length: int, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    monkeypatch.setattr(tiles, "HALVES", HALVES)
    first_only = way.dtype == torch.float32 and length > 140
    case = way.case(rule, (length, 3), n_heads=1, head_width=16, first_only=first_only)
    assert way.error(case, device) < 1


@EVERY_WAY
@pytest.mark.parametrize("head_width", [20, 128])
def test_widths(head_width: int, way: Way, device: torch.device) -> None:
    case = way.case("squares", (3, 40), n_heads=1, head_width=head_width, spread=1.0)
    assert way.error(case, device) < 1


ASKED = {
    "bias": Case("squares", with_bias=True),
    "bias, first pieces": Case("softmax", with_bias=True, first_only=True),
    "bias, heads gone": Case("learned", lengths=(2, 9), with_bias=True, alive=(0b10, 0b01)),
    "blocks, first pieces": Case("block_top_k", lengths=(2, 9, 17), first_only=True),
    "heads gone": Case("squares", alive=(0b10, 0b00, 0b11), wanted="received"),
    "rows of nobody": Case("lines", n_nobody=7, wanted="received"),
}


@EVERY_WAY
@pytest.mark.parametrize("asked", ASKED)
def test_what_else_may_be_asked(asked: str, way: Way, device: torch.device) -> None:
    case = ASKED[asked]
    if case.rule not in way.rules:
        pytest.skip("this rule goes another way")
    options = {key: getattr(case, key) for key in ("with_bias", "alive", "first_only", "n_nobody")}
    assert way.error(way.case(case.rule, case.lengths, wanted=case.wanted, **options), device) < 1


@pytest.mark.parametrize(
    ("way", "rule"),
    [("whole", "learned"), ("whole halves", "softmax"), ("walked", "learned"), ("pairs", "top_k")],
    indirect=["way"],
)
def test_dropout_leaves_the_same_weights_to_both_passes(
    way: Way, rule: str, device: torch.device
) -> None:
    case = way.case(rule, (60,), n_heads=1, head_width=64, spread=1.0)
    assert way.error(case, device, dropout=0.3) < 1


@MEANT
@EVERY_RULE
def test_what_is_not_a_number_stays_in_its_text(way: Way, rule: str, device: torch.device) -> None:
    """What is not a number in the second of three texts pulls on no other, to the bit."""
    case = way.case(rule, (3, 5, 4), n_heads=1, head_width=16)
    others = [0, 1, 2, 8, 9, 10, 11]
    good = pulled(case, device, way.dtype)
    for bad in (torch.nan, torch.inf) if way.dtype == HALF else (torch.nan,):
        spoilt = pulled(case, device, way.dtype, bad=bad)
        assert torch.equal(spoilt[others], good[others])
        assert spoilt[3:8].isnan().any()


@MEANT
@EVERY_RULE
def test_a_key_far_behind_pulls_on_nothing(way: Way, rule: str, device: torch.device) -> None:
    """The third key is as far behind the others as the type can say."""
    case = way.case(rule, (6,), n_heads=1, head_width=16)
    inputs = make_inputs(case, device, way.dtype)
    stacked, far = inputs.stacked.detach(), 6e4 if way.dtype == HALF else 1e20
    stacked[:, 0, :, 0], stacked[:, 1, :, 0] = far, 0.0
    stacked[2, 1, :, 0] = -far
    its_rule, _ = all_rules(1, device)[rule]
    run_kernels(case, inputs, its_rule).mixed.square().sum().backward()
    assert inputs.stacked.grad is not None
    # queries so large overflow in half precision, and keys with them
    finite = slice(None) if way.dtype == torch.float32 else 2
    assert inputs.stacked.grad[:, finite].isfinite().all()
    assert not inputs.stacked.grad[2, 2].any()
    assert way.dtype == HALF or not inputs.stacked.grad[2, 1].any()


@EVERY_WAY
def test_rows_of_no_text_give_and_get_nothing(way: Way, device: torch.device) -> None:
    case = way.case("squares", (3, 2), n_heads=1, head_width=16, n_nobody=4)
    inputs = make_inputs(case, device, way.dtype)
    inputs.stacked.detach()[-4:] = torch.nan
    out = run_kernels(case, inputs, RowRule("squares"))
    assert not out.mixed[-4:].any()
    to_mixed = torch.ones_like(out.mixed)
    to_mixed[-4:] = torch.nan
    out.mixed.backward(to_mixed)
    assert inputs.stacked.grad is not None
    assert not inputs.stacked.grad[-4:].any()
    assert inputs.stacked.grad[:-4].isfinite().all()
    nobody = way.case("squares", (), n_nobody=4)
    assert not pulled(nobody, device, way.dtype).any()


@pytest.mark.parametrize("way", ["walked"], indirect=True)
def test_what_all_values_share_pulls_on_no_query(way: Way, device: torch.device) -> None:
    """The means are taken away before anything is rounded."""
    by_offset = []
    for offset in (0.0, 30.0):
        case = Case("squares", lengths=(70,), n_heads=1)
        inputs = make_inputs(case, device, HALF)
        stacked = inputs.stacked.detach()
        stacked[:, 2] = stacked[:, 2].round(decimals=0)  # which the offset does not round
        stacked[:, 2] += offset
        out = run_kernels(case, inputs, RowRule("squares")).mixed
        draw = torch.Generator().manual_seed(1)
        out.backward(torch.randn(out.shape, generator=draw).to(out))
        assert inputs.stacked.grad is not None
        by_offset.append(inputs.stacked.grad[:, :2].float())
    assert relative_gap(*reversed(by_offset)) < 10 * way.close


def test_separate_tensors_get_what_slices_of_one_get(device: torch.device) -> None:
    case = Case("squares", lengths=(4, 7), n_heads=1, head_width=16)
    inputs = make_inputs(case, device, torch.float32)
    run_kernels(case, inputs, RowRule("squares")).mixed.square().sum().backward()
    parts = [part.detach().clone().requires_grad_() for part in inputs.stacked.unbind(1)]
    pair = torch.stack(parts[1:], 1).detach().requires_grad_()
    query = parts[0].detach().requires_grad_()
    bounds = torch.tensor(inputs.bounds, dtype=torch.int32, device=device)
    both = tiles_of(case.lengths, case.lengths, device)
    for (q, k, v), stacked in ((parts, None), ((query, *pair.unbind(1)), pair)):
        packed = Packed(q, k, v, bounds, bounds, both)
        out = packed_attention(packed, RowRule("squares"), wanted=Wanted(), stacked=stacked)
        out.mixed.square().sum().backward()
    assert torch.equal(torch.stack([part.grad for part in parts], 1), inputs.stacked.grad)
    assert torch.equal(torch.cat([query.grad[:, None], pair.grad], 1), inputs.stacked.grad)


def test_importance_is_not_differentiable(device: torch.device) -> None:
    case = Case("learned", lengths=(5,), wanted="received")
    rule, _ = all_rules(case.n_heads, device)["learned"]
    out = run_kernels(case, make_inputs(case, device, torch.float32), rule)
    assert out.mixed.requires_grad
    assert not out.received.requires_grad
    assert not out.head_size.requires_grad


# Rows held as pairs of halves


@pytest.mark.parametrize("rule", RULES)
def test_long_rows_are_pairs_with_a_gradient_where_it_stays_exact(rule: str) -> None:
    longest = shapes_for(rule, 512, trains=True, halves=True)[-1]
    assert (longest == PAIRS) == longest.walks == (rule in PAIRED_IN_TRAINING)
    assert not any(shape.walks for shape in shapes_for(rule, 512, trains=True))


@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_the_weights_are_those_of_the_forward_pass(rule: str, device: torch.device) -> None:
    """What each key received forward is what its value gets from a pull of 1 on everything; of
    equal keys the first ones are kept, as many as there may be.
    """
    case = Case(rule, lengths=(260,), n_heads=1, wanted="received", halves=True)
    for alike in (False, True):
        inputs = make_inputs(case, device, HALF)
        if alike:
            inputs.stacked.detach()[:, 1] = inputs.stacked.detach()[:1, 1].clone()
        its_rule, _ = all_rules(1, device)[rule]
        out = run_kernels(case, inputs, its_rule)
        out.mixed.backward(torch.ones_like(out.mixed))
        assert out.received is not None
        assert inputs.stacked.grad is not None
        to_value = inputs.stacked.grad[:, 2, 0]  # (key, head_width)
        received = out.received.sum(0)[0]
        assert relative_gap(to_value, received[:, None].expand_as(to_value)) < 3e-3
        if alike and rule == "top_k":
            expected = (torch.arange(260, device=device) < 130) * 2.0  # 260 rows, each 1 / 130
            torch.testing.assert_close(to_value[:, 0].float(), expected, atol=1e-2, rtol=0.0)


@pytest.mark.parametrize("way", ["pairs"], indirect=True)
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_far_from_0_the_best_keys_are_told_apart(rule: str, way: Way, device: torch.device) -> None:
    """All affinities about 200: half precision has an eighth there, and about their best all."""
    found = []
    for offset in (0.0, 200.0):
        case = Case(rule, lengths=(70,), n_heads=1, head_width=16, halves=True)
        inputs = make_inputs(case, device, way.dtype)
        stacked = inputs.stacked.detach()
        stacked[:, 0, :, 0], stacked[:, 1, :, 0] = 32.0, offset / 8
        its_rule, _ = all_rules(1, device)[rule]
        found.append(run_kernels(case, inputs, its_rule).mixed.detach())
    torch.testing.assert_close(*found, atol=5e-3, rtol=0.0)
