"""The gradient's walks over long texts against autograd through the plain path in float64."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import (
    RULES,
    Case,
    check_bad_stays_in_its_text,
    check_far_key_pulls_on_nothing,
    gradient_error,
    gradients,
    heads_for,
    make_inputs,
    relative_gap,
    run_kernels,
)

from litotes.encoder.attention.weighting import LONGEST, RowRule
from litotes.kernels import attention
from litotes.kernels.attention import Blocks

CLOSE = 3e-3
HALF = torch.float16


@pytest.fixture
def all_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts too, which is quicker to try."""
    monkeypatch.setattr(attention, "WALKS_BEYOND", 0)


@pytest.mark.parametrize("rule", RULES)
def test_follows_autograd(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(17, 129), n_heads=heads_for(rule))
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize("rule", ["softmax", "squares", "learned", "top_k"])
def test_short_texts(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(1, 17, 128, 64), n_heads=heads_for(rule))
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("length", [300, 512, 513, 1024])
@pytest.mark.parametrize("rule", ["softmax", "squares", "learned", "top_k"])
def test_the_longest_texts(rule: str, length: int, device: torch.device) -> None:
    case = Case(rule, lengths=(length, 3), n_heads=heads_for(rule), head_width=16)
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize("head_width", [20, 64, 128])
def test_widths(head_width: int, device: torch.device) -> None:
    case = Case("squares", lengths=(3, 70), head_width=head_width, spread=1.0)
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize("held", [64, 128])
@pytest.mark.parametrize("step", [32, 64, 128])
@pytest.mark.parametrize("rule", ["squares", "top_k"])
def test_sizes_of_blocks(
    held: int, step: int, rule: str, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    monkeypatch.setattr(attention, "BY_QUERY", Blocks(held, step, 4, 2))
    monkeypatch.setattr(attention, "BY_KEY", Blocks(step, held, 4, 2))
    case = Case(rule, lengths=(5, 140), n_heads=1)
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize(
    "case",
    [
        Case("squares", alive=(0b10, 0b00, 0b11)),
        Case("lines", n_nobody=7, wanted="received"),
        Case("block_top_k", lengths=(2, 9, 70)),
    ],
    ids=lambda case: case.rule,
)
def test_what_else_may_be_asked(case: Case, device: torch.device) -> None:
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.parametrize(
    "case",
    [Case("squares", lengths=(130,), with_bias=True), Case("squares", (130,), first_only=True)],
    ids=["bias", "first pieces"],
)
def test_what_does_not_walk(case: Case, device: torch.device) -> None:
    assert gradient_error(case, device, HALF) < CLOSE


@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize("rule", ["softmax", "learned", "top_k"])
def test_dropout_leaves_the_same_weights_as_before(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(70,), head_width=80, spread=1.0)
    assert gradient_error(case, device, HALF, dropout=0.3) < CLOSE


@pytest.mark.parametrize("rule", ["squares", "learned", "top_k"])
def test_walks_to_where_whole_rows_lead(
    rule: str, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    case = Case(rule, lengths=(140,), n_heads=1)
    walked = gradients(case, device, HALF)
    monkeypatch.setattr(attention, "WALKS_BEYOND", LONGEST)
    whole = gradients(case, device, HALF)
    assert relative_gap(walked, whole) < CLOSE


@pytest.mark.usefixtures("all_walk")
def test_what_all_values_share_pulls_on_no_query(device: torch.device) -> None:
    """The means are taken away before anything is rounded."""
    case = Case("squares", lengths=(70,), n_heads=1)
    by_offset = []
    for offset in (0.0, 30.0):
        inputs = make_inputs(case, device, HALF)
        stacked = inputs.stacked.detach()
        stacked[:, 2] = stacked[:, 2].round(decimals=0)  # which the offset does not round
        stacked[:, 2] += offset
        out = run_kernels(case, inputs, RowRule("squares")).mixed
        draw = torch.Generator().manual_seed(1)
        out.backward(torch.randn(out.shape, generator=draw).to(out))
        assert inputs.stacked.grad is not None
        by_offset.append(inputs.stacked.grad[:, :2].float())
    plain, moved = by_offset
    assert relative_gap(moved, plain) < 10 * CLOSE


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an infinity less an infinity
@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("rule", ["softmax", "squares", "lines", "learned", "block_top_k"])
def test_what_is_not_a_number_stays_in_its_text(
    rule: str, bad: float, device: torch.device
) -> None:
    case = Case(rule, lengths=(3, 5, 4), n_heads=1, head_width=16)
    check_bad_stays_in_its_text(case, device, HALF, bad)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what overflows, on purpose
@pytest.mark.usefixtures("all_walk")
@pytest.mark.parametrize("rule", RULES)
def test_a_key_far_behind_pulls_on_nothing(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(6,), n_heads=1, head_width=16)
    check_far_key_pulls_on_nothing(case, device, HALF)


@pytest.mark.usefixtures("all_walk")
def test_rows_of_no_text_give_and_get_nothing(device: torch.device) -> None:
    case = Case("softmax", lengths=(3, 2), n_heads=1, head_width=16, n_nobody=4)
    inputs = make_inputs(case, device, HALF)
    inputs.stacked.detach()[-4:] = torch.nan
    out = run_kernels(case, inputs, RowRule("softmax"))
    to_mixed = torch.ones_like(out.mixed)
    to_mixed[-4:] = torch.nan
    out.mixed.backward(to_mixed)
    assert inputs.stacked.grad is not None
    assert not inputs.stacked.grad[-4:].any()
    assert inputs.stacked.grad[:-4].isfinite().all()


@pytest.mark.usefixtures("all_walk")
def test_no_texts_at_all(device: torch.device) -> None:
    case = Case("softmax", lengths=(), n_nobody=4)
    assert not gradients(case, device, HALF).any()


@pytest.mark.usefixtures("all_walk")
def test_the_same_bytes_twice(device: torch.device) -> None:
    case = Case("learned", lengths=(5, 70))
    assert torch.equal(gradients(case, device, HALF), gradients(case, device, HALF))
