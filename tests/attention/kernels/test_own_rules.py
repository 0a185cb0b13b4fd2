"""What the kernels make of every weighting of the table is what the weighting itself says: a new
entry with a rule is tested before its author writes a test.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import Case, make_inputs, run_kernels, run_plain

from litotes.attention import WEIGHTINGS
from litotes.core.registry import build

HEADS = 3
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in sorted(WEIGHTINGS)),
    ("entmax", {"alpha": 2.0}),
    ("entmax", {"alpha": 1.3}),
    ("entmax", {"alpha": "learned"}),
    ("top_k", {"sparsity": 0.9, "ramp": 0.5}),
    ("block_top_k", {"sparsity": 0.9, "block": 2}),
]


@pytest.mark.parametrize(
    ("name", "options"), SETTINGS, ids=[f"{name} {options}" for name, options in SETTINGS]
)
def test_a_row_is_weighed_as_the_weighting_weighs_it(
    name: str, options: dict[str, Any], device: torch.device
) -> None:
    weighting = build(WEIGHTINGS, name, "weighting", HEADS, options=options).double().to(device)
    weighting.progress = 0.3  # in the middle of a ramp, where there is one
    with torch.no_grad():
        for parameter in weighting.parameters():
            parameter += torch.linspace(-1, 1, HEADS).to(parameter)  # heads that differ
    rule = weighting.row_rule(device)
    if rule is None:
        pytest.skip(f"There is no kernel for {name}.")
    case = Case(rule.name, lengths=(1, 7, 40, 66), n_heads=HEADS)
    with torch.no_grad():
        mixed = run_kernels(case, make_inputs(case, device, torch.float32), rule).mixed
        expected, _ = run_plain(case, make_inputs(case, device, torch.float64), weighting)
    torch.testing.assert_close(mixed.double(), expected, rtol=2e-5, atol=2e-5)
