"""What the kernels make of every weighting of the table is what the weighting itself says: a new
entry with a rule is tested before its author writes a test.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import Case, make_inputs, run_kernels, run_plain
from made_weightings import SETTINGS, make_weighting, name_of

HEADS = 3


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_a_row_is_weighed_as_the_weighting_weighs_it(
    setting: tuple[str, dict[str, Any]], device: torch.device
) -> None:
    weighting = make_weighting(setting, HEADS).double().to(device)
    rule = weighting.row_rule(device)
    if rule is None:
        pytest.skip(f"There is no kernel for {name_of(setting)}.")
    case = Case(rule.name, lengths=(1, 7, 40, 66), n_heads=HEADS)
    with torch.no_grad():
        mixed = run_kernels(case, make_inputs(case, device, torch.float32), rule).mixed
        expected, _ = run_plain(case, make_inputs(case, device, torch.float64), weighting)
    torch.testing.assert_close(mixed.double(), expected, rtol=2e-5, atol=2e-5)
