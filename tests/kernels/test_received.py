"""What keys received, by every kernel that adds it up, against the plain path in float64."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from cases import Case, all_rules, in_double, make_inputs, relative_gap, run_plain

from litotes.kernels.attention import Attended, Packed, Wanted, attend
from litotes.kernels.tiles import LONG, SHORT, WHOLE, Shape, Tiles, tile_numbers

CLOSE = {torch.float32: 2e-5, torch.float16: 2e-3}
DTYPES = pytest.mark.parametrize("dtype", CLOSE, ids=["float32", "float16"])
IMPORTANCES = pytest.mark.parametrize("importance", ["received", "value"])


def attend_with(
    case: Case, importance: str, shape: Shape, device: torch.device, dtype: torch.dtype
) -> tuple[Attended, list[torch.Tensor]]:
    """By the kernel for this shape; and what each text's keys received. (attention_head, key)"""
    inputs = make_inputs(case, device, dtype)
    rule, weighting = all_rules(case.n_heads, device)[case.rule]
    bounds = torch.tensor(inputs.bounds, dtype=torch.int32, device=device)
    lengths = torch.tensor(case.lengths, dtype=torch.int32).numpy()
    (numbers,) = tile_numbers(lengths, lengths, (shape,))
    tiles = [Tiles(shape, torch.from_numpy(numbers).to(device))]
    alive = None if case.alive is None else torch.tensor(case.alive, device=device)
    packed = Packed(*inputs.stacked.unbind(1), bounds, bounds, tiles, inputs.bias, alive)
    wanted = Wanted(importance, n_slots=-(-max(case.lengths) // shape.rows))
    with torch.no_grad():
        out = attend(packed, rule, wanted=wanted)
        exact = in_double(inputs)
        _, weights = run_plain(case, exact, weighting.to(device))
    received = []
    for text, own in enumerate(weights):
        start, end = inputs.bounds[text], inputs.bounds[text + 1]
        lengths_of_values = exact.stacked[start:end, 2].norm(dim=-1).T
        received.append(own.sum(1) * (lengths_of_values if importance == "value" else 1.0))
    return out, received


def error_of(
    case: Case, importance: str, shape: Shape, device: torch.device, dtype: torch.dtype
) -> float:
    out, wanted = attend_with(case, importance, shape, device, dtype)
    assert out.received is not None
    errors, start = [], 0
    for length, own in zip(case.lengths, wanted, strict=True):
        n_tiles = -(-length // shape.rows)
        got = out.received[:n_tiles, :, start : start + length].sum(0)
        errors.append(relative_gap(got, own))
        start += length
    return max(errors)


@DTYPES
@IMPORTANCES
@pytest.mark.parametrize("shape", [*SHORT, LONG], ids=["64", "128", "walk"])
def test_adds_up_what_the_plain_path_gives(
    shape: Shape, importance: str, dtype: torch.dtype, device: torch.device
) -> None:
    longest = 130 if shape.walks else shape.span
    case = Case("softmax", lengths=(1, 17, longest), head_width=20)
    assert error_of(case, importance, shape, device, dtype) < CLOSE[dtype]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # no key at all: an infinity less another
@IMPORTANCES
@pytest.mark.parametrize("shape", [SHORT[1], LONG], ids=["128", "walk"])
def test_removed_heads_give_nothing(shape: Shape, importance: str, device: torch.device) -> None:
    case = Case("softmax", lengths=(3, 70), alive=(0b01, 0b10))
    assert error_of(case, importance, shape, device, torch.float16) < CLOSE[torch.float16]


@pytest.mark.slow
@IMPORTANCES
@pytest.mark.parametrize("length", [300, 512, 513, 1024])
def test_long_texts_walk(importance: str, length: int, device: torch.device) -> None:
    case = Case("softmax", lengths=(length, 2), n_heads=1)
    assert error_of(case, importance, LONG, device, torch.float16) < CLOSE[torch.float16]


def test_lengths_of_values_in_steps(device: torch.device) -> None:
    """Rows so long that a value comes in steps."""
    case = Case("softmax", lengths=(20,), n_heads=1, head_width=64)
    assert error_of(case, "value", WHOLE[-1], device, torch.float16) < CLOSE[torch.float16]
