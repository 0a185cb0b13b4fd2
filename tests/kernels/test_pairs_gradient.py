"""The gradient of rows held as pairs of halves against autograd through the plain path."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import (
    Case,
    all_rules,
    check_bad_stays_in_its_text,
    check_far_key_pulls_on_nothing,
    forward_error,
    gradient_error,
    gradients,
    make_inputs,
    relative_gap,
    run_kernels,
)

from litotes.kernels import tiles
from litotes.kernels.tiles import HALVES, PAIRED_IN_TRAINING, WHOLE, shapes_for

CLOSE = 3e-3
"""As that of rows held whole (test_backward_walk.py)."""

HALF = torch.float16
PAIRS = HALVES[3]


@pytest.fixture
def all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts too, which is quicker to try."""
    monkeypatch.setattr(tiles, "HALVES", (PAIRS, WHOLE[-1]))


@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_long_rows_are_pairs_with_a_gradient_too(rule: str) -> None:
    assert shapes_for(rule, 512, trains=True, halves=True)[-1] == PAIRS
    assert not any(shape.walks for shape in shapes_for(rule, 512, trains=True))


@pytest.mark.parametrize("rule", ["lines", "powers"])
def test_other_rules_hold_whole_rows_for_it(rule: str) -> None:
    assert not any(shape.walks for shape in shapes_for(rule, 512, trains=True, halves=True))


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("lengths", [(1, 17, 128), (129,)], ids=["short", "129"])
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_follows_autograd(rule: str, lengths: tuple[int, ...], device: torch.device) -> None:
    case = Case(rule, lengths, 1, 16, halves=True, quarters=rule == "top_k")
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("length", [300, 512, 513])
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_the_longest_texts(rule: str, length: int, device: torch.device) -> None:
    case = Case(rule, (length, 3), 1, 16, halves=True, quarters=rule == "top_k")
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize(
    "case",
    [
        Case("squares", alive=(0b10, 0b00, 0b11), wanted="received", halves=True),
        Case("squares", (3, 70), 1, 20, n_nobody=7, halves=True),
        Case("top_k", (70,), 1, 64, spread=1.0, halves=True, quarters=True),
        Case("squares", lengths=(70,), with_bias=True, halves=True),
        Case("squares", lengths=(9, 70), first_only=True, halves=True),
    ],
    ids=["heads gone", "rows of nobody", "width", "bias", "first pieces"],
)
def test_what_else_may_be_asked(case: Case, device: torch.device) -> None:
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_dropout_leaves_the_same_weights_to_both_passes(rule: str, device: torch.device) -> None:
    case = Case(rule, (60,), 1, 64, spread=1.0, halves=True, quarters=rule == "top_k")
    assert gradient_error(case, device, HALF, dropout=0.3) < CLOSE


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_dropout_drops_what_it_drops_from_whole_rows(rule: str, device: torch.device) -> None:
    mixed = []
    for halves in (False, True):
        case = Case(rule, (5, 70), 1, 16, halves=halves, quarters=rule == "top_k")
        inputs, seed = make_inputs(case, device, HALF), torch.tensor([3], device=device)
        its_rule, _ = all_rules(case.n_heads, device)[rule]
        mixed.append(run_kernels(case, inputs, its_rule, dropout=0.3, seed=seed).mixed.detach())
    torch.testing.assert_close(*mixed, atol=5e-3, rtol=0.0)


@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_the_weights_are_those_of_the_forward_pass(rule: str, device: torch.device) -> None:
    """What each key received forward is what its value gets from a pull of 1 on everything."""
    case = Case(rule, lengths=(260,), n_heads=1, wanted="received", halves=True)
    inputs = make_inputs(case, device, HALF)
    its_rule, _ = all_rules(1, device)[rule]
    out = run_kernels(case, inputs, its_rule)
    out.mixed.backward(torch.ones_like(out.mixed))
    assert out.received is not None
    assert inputs.stacked.grad is not None
    to_value = inputs.stacked.grad[:, 2, 0]  # (key, head_width)
    received = out.received.sum(0)[0]
    assert relative_gap(to_value, received[:, None].expand_as(to_value)) < CLOSE


def test_equal_keys_pull_from_the_first(device: torch.device) -> None:
    """The kept keys are those of the forward pass, of which there are as many as there may be."""
    case = Case("top_k", lengths=(260,), n_heads=1, head_width=16, halves=True)
    inputs = make_inputs(case, device, HALF)
    inputs.stacked.detach()[:, 1] = inputs.stacked.detach()[:1, 1].clone()
    rule, _ = all_rules(1, device)["top_k"]
    out = run_kernels(case, inputs, rule).mixed
    out.backward(torch.ones_like(out))
    assert inputs.stacked.grad is not None
    to_value = inputs.stacked.grad[:, 2, 0, 0].float()
    expected = (torch.arange(260, device=device) < 130) * 2.0  # 260 rows, each 1 / 130
    torch.testing.assert_close(to_value, expected, atol=1e-2, rtol=0.0)


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_far_from_0_the_best_keys_are_told_apart(rule: str, device: torch.device) -> None:
    """All affinities about 200: half precision has an eighth there, and about their best all."""
    errors = []
    for offset in (0.0, 200.0):
        case = Case(rule, lengths=(70,), n_heads=1, head_width=16, halves=True)
        inputs = make_inputs(case, device, HALF)
        stacked = inputs.stacked.detach()
        stacked[:, 0, :, 0], stacked[:, 1, :, 0] = 32.0, offset / 8
        its_rule, _ = all_rules(1, device)[rule]
        errors.append(run_kernels(case, inputs, its_rule).mixed.detach())
    torch.testing.assert_close(*errors, atol=5e-3, rtol=0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an infinity less an infinity
@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_what_is_not_a_number_stays_in_its_text(
    rule: str, bad: float, device: torch.device
) -> None:
    case = Case(rule, lengths=(3, 5, 4), n_heads=1, head_width=16, halves=True)
    check_bad_stays_in_its_text(case, device, HALF, bad)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what overflows, on purpose
@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("rule", PAIRED_IN_TRAINING)
def test_a_key_far_behind_pulls_on_nothing(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(6,), n_heads=1, head_width=16, halves=True)
    check_far_key_pulls_on_nothing(case, device, HALF)


@pytest.mark.usefixtures("all_pairs")
def test_the_same_bytes_twice(device: torch.device) -> None:
    case = Case("squares", lengths=(5, 70), halves=True)
    assert torch.equal(gradients(case, device, HALF), gradients(case, device, HALF))


@pytest.mark.usefixtures("all_pairs")
def test_answers_are_as_before(device: torch.device) -> None:
    case = Case("squares", lengths=(5, 70), wanted="received", halves=True)
    assert forward_error(case, device, HALF) < 5e-2  # received: sums of 70 weights
