"""What keys received, by every kernel that adds it up, against the plain path in float64."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import Case, forward_error

from litotes.kernels.tiles import LONG, SHORT, WHOLE, Shape

CLOSE = {torch.float32: 2e-5, torch.float16: 1e-2}
SHAPES = {"64": SHORT[0], "128": SHORT[1], "walk": LONG, "values in steps": WHOLE[-1]}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # no key at all: an infinity less another
@pytest.mark.parametrize("dtype", CLOSE, ids=["float32", "float16"])
@pytest.mark.parametrize("importance", ["received", "value"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_adds_up_what_the_plain_path_gives(
    shape: Shape, importance: str, dtype: torch.dtype, device: torch.device
) -> None:
    """Of two heads, some of them removed."""
    lengths, width = {64: (1, 17, 64), 128: (17, 128)}.get(shape.span, (1, 130)), 20
    if shape == WHOLE[-1]:
        lengths, width = (20,), 64
    alive = (0b11, 0b01, 0b10)[: len(lengths)]
    case = Case("softmax", lengths, 2, width, alive=alive, wanted=importance, shape=shape)
    assert forward_error(case, device, dtype) < CLOSE[dtype]


@pytest.mark.slow
@pytest.mark.parametrize("length", [512, 1024])
def test_long_texts_walk(length: int, device: torch.device) -> None:
    case = Case("softmax", (length, 2), 1, wanted="value", shape=LONG)
    assert forward_error(case, device, torch.float16) < 5 * CLOSE[torch.float16]
