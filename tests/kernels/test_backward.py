"""The backward kernels against autograd through the plain path in float64."""

from __future__ import annotations

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
    run_kernels,
    tiles_of,
)

from litotes.encoder.attention.weighting import RowRule
from litotes.kernels.attention import Packed, Wanted, packed_attention

CLOSE = {torch.float32: 2e-5, torch.float16: 3e-3}
DTYPES = pytest.mark.parametrize("dtype", CLOSE, ids=["float32", "float16"])


@DTYPES
@pytest.mark.parametrize("rule", RULES)
def test_follows_autograd(rule: str, dtype: torch.dtype, device: torch.device) -> None:
    case = Case(rule, lengths=(1, 33), n_heads=heads_for(rule))
    assert gradient_error(case, device, dtype) < CLOSE[dtype]


@pytest.mark.parametrize("length", [70, 130])
def test_longer_texts(length: int, device: torch.device) -> None:
    case = Case("learned", lengths=(length,), n_heads=1)
    assert gradient_error(case, device, torch.float32) < CLOSE[torch.float32]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "length"), [("squares", 140), ("top_k", 70), ("block_top_k", 70)])
def test_many_tiles(rule: str, length: int, device: torch.device) -> None:
    case = Case(rule, lengths=(length,), n_heads=1)
    assert gradient_error(case, device, torch.float32) < CLOSE[torch.float32]


@pytest.mark.slow
@pytest.mark.parametrize("length", [500, 1024])
def test_the_longest_texts(length: int, device: torch.device) -> None:
    case = Case("squares", lengths=(length,), n_heads=1, first_only=True)
    assert gradient_error(case, device, torch.float32) < CLOSE[torch.float32]


@DTYPES
@pytest.mark.parametrize("head_width", [20, 64, 128])
def test_widths(head_width: int, dtype: torch.dtype, device: torch.device) -> None:
    case = Case("squares", lengths=(3, 33), head_width=head_width, spread=1.0)
    assert gradient_error(case, device, dtype) < CLOSE[dtype]


@pytest.mark.parametrize(
    "case",
    [
        Case("squares", with_bias=True),
        Case("softmax", with_bias=True, first_only=True),
        Case("learned", lengths=(2, 9), with_bias=True, alive=(0b10, 0b01)),
        Case("block_top_k", lengths=(2, 9, 17), first_only=True),
        Case("softmax", alive=(0b01, 0b00, 0b11)),
        Case("lines", n_nobody=7, wanted="received"),
    ],
    ids=lambda case: case.rule,
)
def test_what_else_may_be_asked(case: Case, device: torch.device) -> None:
    assert gradient_error(case, device, torch.float32) < CLOSE[torch.float32]


@pytest.mark.parametrize("rule", ["softmax", "learned", "top_k"])
def test_dropout_leaves_the_same_weights_as_before(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(40,), head_width=64, spread=1.0)
    error = gradient_error(case, device, torch.float32, dropout=0.3)
    assert error < CLOSE[torch.float32]


def test_separate_tensors_get_what_slices_of_one_get(device: torch.device) -> None:
    case = Case("squares", lengths=(4, 7), n_heads=1, head_width=16)
    inputs = make_inputs(case, device, torch.float32)
    whole = run_kernels(case, inputs, RowRule("squares"))
    whole.mixed.square().sum().backward()
    parts = [part.detach().clone().requires_grad_() for part in inputs.stacked.unbind(1)]
    pair = torch.stack(parts[1:], 1).detach().requires_grad_()
    query = parts[0].detach().requires_grad_()
    bounds = torch.tensor(inputs.bounds, dtype=torch.int32, device=device)
    tiles = tiles_of(case.lengths, case.lengths, device)
    for (q, k, v), stacked in ((parts, None), ((query, *pair.unbind(1)), pair)):
        packed = Packed(q, k, v, bounds, bounds, tiles)
        out = packed_attention(packed, RowRule("squares"), wanted=Wanted(), stacked=stacked)
        out.mixed.square().sum().backward()
    assert torch.equal(torch.stack([part.grad for part in parts], 1), inputs.stacked.grad)
    assert torch.equal(torch.cat([query.grad[:, None], pair.grad], 1), inputs.stacked.grad)


def test_rows_of_no_text_give_and_get_nothing(device: torch.device) -> None:
    case = Case("softmax", lengths=(3, 2), n_heads=1, head_width=16, n_nobody=4)
    inputs = make_inputs(case, device, torch.float32)
    inputs.stacked.detach()[-4:] = torch.nan
    out = run_kernels(case, inputs, RowRule("softmax"))
    assert not out.mixed[-4:].any()
    to_mixed = torch.ones_like(out.mixed)
    to_mixed[-4:] = torch.nan
    out.mixed.backward(to_mixed)
    assert not inputs.stacked.grad[-4:].any()
    assert inputs.stacked.grad[:-4].isfinite().all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an infinity less an infinity
@pytest.mark.parametrize("rule", ["softmax", "lines", "learned", "block_top_k"])
def test_what_is_not_a_number_stays_in_its_text(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(3, 5, 4), n_heads=1, head_width=16)
    gradients = []
    for bad in (None, torch.nan):
        inputs = make_inputs(case, device, torch.float32)
        if bad is not None:
            inputs.stacked.detach()[4] = bad
        its_rule, _ = all_rules(1, device)[rule]
        run_kernels(case, inputs, its_rule).mixed.square().sum().backward()
        gradients.append(inputs.stacked.grad)
    good, spoilt = gradients
    others = [0, 1, 2, 8, 9, 10, 11]
    assert torch.equal(spoilt[others], good[others])
    assert spoilt[3:8].isnan().any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what overflows, on purpose
@pytest.mark.parametrize("rule", RULES)
def test_an_affinity_of_minus_infinity_pulls_on_nothing(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(6,), n_heads=1, head_width=16)
    inputs = make_inputs(case, device, torch.float32)
    stacked = inputs.stacked.detach()
    stacked[:, 0, :, 0], stacked[:, 1, :, 0] = 1e20, 0.0
    stacked[2, 1, :, 0] = -1e20
    its_rule, _ = all_rules(1, device)[rule]
    run_kernels(case, inputs, its_rule).mixed.square().sum().backward()
    assert inputs.stacked.grad.isfinite().all()
    assert not inputs.stacked.grad[2, 1:].any()


def test_the_same_bytes_twice_and_nothing_for_what_is_not_differentiable(
    device: torch.device,
) -> None:
    case = Case("learned", lengths=(5, 40), with_bias=True, wanted="received")
    runs = []
    for _ in range(2):
        inputs = make_inputs(case, device, torch.float32)
        rule, _ = all_rules(case.n_heads, device)["learned"]
        out = run_kernels(case, inputs, rule)
        assert not out.received.requires_grad
        assert not out.head_size.requires_grad
        out.mixed.square().sum().backward()
        runs.append([tensor.grad for tensor in (*inputs.learned, rule.alpha)])
    assert all(torch.equal(first, second) for first, second in zip(*runs, strict=True))


def test_others_queries_need_tiles_of_keys(device: torch.device) -> None:
    stacked = torch.randn(4, 3, 1, 16, device=device, requires_grad=True)
    bounds = torch.tensor([0, 4], dtype=torch.int32, device=device)
    packed = Packed(*stacked.unbind(1), bounds[:], bounds, tiles_of([4], [4], device))
    with pytest.raises(ValueError, match="key_tiles"):
        packed_attention(packed, RowRule("softmax"), wanted=Wanted())
