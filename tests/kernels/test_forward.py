"""The forward kernels against the plain path in float64, for every rule and every weighting of the
table.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import (
    RULES,
    Case,
    forward_error,
    heads_for,
    make_inputs,
    run_kernels,
    run_plain,
)
from made_weightings import SETTINGS, make_weighting, name_of

from litotes.encoder.attention.weighting import RowRule
from litotes.kernels.attention import Packed, attend
from litotes.kernels.tiles import Shape, Tiles

CLOSE = {torch.float32: 2e-5, torch.float16: 5e-3}
DTYPES = pytest.mark.parametrize("dtype", CLOSE, ids=["float32", "float16"])

# an infinity less an infinity is NaN, which is meant, and numpy says so
MEANT = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@DTYPES
@pytest.mark.parametrize("rule", RULES)
def test_mixes_as_the_plain_path_does(rule: str, dtype: torch.dtype, device: torch.device) -> None:
    case = Case(rule, lengths=(1, 33), n_heads=heads_for(rule), wanted="received")
    assert forward_error(case, device, dtype) < CLOSE[dtype]


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_a_row_is_weighed_as_the_weighting_weighs_it(
    setting: tuple[str, dict[str, Any]], device: torch.device
) -> None:
    """A new entry of the table with a rule is tested before its author writes a test."""
    weighting = make_weighting(setting, 3).double().to(device)
    rule = weighting.row_rule(device)
    if rule is None:
        pytest.skip(f"There is no kernel for {name_of(setting)}.")
    case = Case(rule.name, lengths=(1, 7, 40, 66), n_heads=3)
    with torch.no_grad():
        mixed = run_kernels(case, make_inputs(case, device, torch.float32), rule).mixed
        expected, _ = run_plain(case, make_inputs(case, device, torch.float64), weighting)
    torch.testing.assert_close(mixed.double(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_longest_texts(rule: str, device: torch.device) -> None:
    case = Case(rule, lengths=(1024,), n_heads=1, first_only=True, wanted="received")
    assert forward_error(case, device, torch.float32) < CLOSE[torch.float32]


@DTYPES
@pytest.mark.parametrize("head_width", [20, 128])
def test_widths(head_width: int, dtype: torch.dtype, device: torch.device) -> None:
    case = Case("squares", lengths=(3, 33), head_width=head_width, spread=1.0)
    assert forward_error(case, device, dtype) < CLOSE[dtype]


@pytest.mark.parametrize(
    "case",
    [
        Case("squares", with_bias=True),
        Case("softmax", with_bias=True, first_only=True),
        Case("block_top_k", lengths=(2, 9, 17), first_only=True, wanted="received"),
        Case("softmax", alive=(0b01, 0b00, 0b11), wanted="received"),
        Case("lines", n_nobody=7, wanted="received"),
        Case("softmax", lengths=(1, 40), wanted="value"),
        Case("top_k", lengths=(1, 40), wanted="value"),
    ],
    ids=lambda case: case.rule,
)
def test_what_else_may_be_asked(case: Case, device: torch.device) -> None:
    assert forward_error(case, device, torch.float32) < 5 * CLOSE[torch.float32]


def test_no_texts_at_all(device: torch.device) -> None:
    case = Case("softmax", lengths=(), n_nobody=4, wanted="received")
    inputs = make_inputs(case, device, torch.float32)
    out = run_kernels(case, inputs, RowRule("softmax"))
    assert not out.mixed.any()
    out.mixed.sum().backward()
    assert not inputs.stacked.grad.any()


def test_a_tile_of_no_text_does_nothing(device: torch.device) -> None:
    query = torch.randn(4, 3, 1, 16, device=device)
    bounds = torch.tensor([0, 4], dtype=torch.int32, device=device)
    numbers = torch.tensor([[-1, -1], [0, 0], [-1, -1]], dtype=torch.int32, device=device)
    outs = []
    for some in (numbers, numbers[1:2]):
        packed = Packed(*query.unbind(1), bounds, bounds, [Tiles(Shape(32, 32, 2), some)])
        outs.append(attend(packed, RowRule("softmax")).mixed)
    assert torch.equal(*outs)
