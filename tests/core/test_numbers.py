from __future__ import annotations

import pytest

from litotes.core.numbers import format_signed


@pytest.mark.parametrize("value", [0.0, -0.0, 0.0004, -0.0004, -1e-12])
def test_what_rounds_to_zero_is_not_negative(value: float) -> None:
    assert format_signed(value, 3) == "+0.000"
    assert format_signed(value, 3, minus="−", plus="") == "0.000"


def test_other_numbers_keep_their_sign() -> None:
    assert format_signed(-0.0006, 3) == "-0.001"
    assert format_signed(-12.34, 1, minus="−") == "−12.3"
    assert format_signed(12.34, 1) == "+12.3"
    assert format_signed(12.34, 1, plus="") == "12.3"
