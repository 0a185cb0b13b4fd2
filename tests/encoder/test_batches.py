"""Batches: where texts lie in them, how large they are, who computes them."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.encoder.layout import Layout
from litotes.encoder.operations import weighted_rows
from litotes.encoder.packing import batches_without_gradients
from litotes.kernels import encode as encoding_by
from litotes.kernels.encode import SWITCH, kernels_wanted


def test_places_of_packed_texts() -> None:
    layout = Layout.of([3, 1, 2])
    assert layout.n_texts == 3
    assert layout.n_pieces == 6
    assert layout.longest == 3
    assert layout.starts.tolist() == [0, 3, 4]
    assert layout.texts.tolist() == [0, 0, 0, 1, 2, 2]
    assert layout.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert layout.firsts.lengths == (1, 1, 1)


def test_a_gpu_takes_larger_batches() -> None:
    for device, most in (("cpu", 64), ("cuda", 1024)):
        batches = list(batches_without_gradients([10] * 4000, torch.device(device)))
        assert max(map(len, batches)) == most
        assert [place for batch in batches for place in batch] == list(range(4000))
    (first, *_) = batches_without_gradients([100] * 1000, torch.device("cuda"))
    assert len(first) == 163  # 16,384 pieces


def test_weighted_rows_are_the_rows_and_have_their_gradient() -> None:
    table = torch.randn(3, 5, requires_grad=True)
    numbers = torch.tensor([2, 0, 0, 1, 2, 2])
    some = torch.randn(6, 5)
    rows = weighted_rows(table, numbers)
    assert torch.equal(rows, functional.embedding(numbers, table))
    (ours,) = torch.autograd.grad((rows * some).sum(), table)
    (theirs,) = torch.autograd.grad((functional.embedding(numbers, table) * some).sum(), table)
    torch.testing.assert_close(ours, theirs)


CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is installed: whether kernels are wanted is known without it."""
    monkeypatch.setattr(encoding_by, "find_spec", lambda name: name)


@pytest.mark.usefixtures("with_triton")
@pytest.mark.parametrize(
    ("value", "wanted"), [(None, True), ("", True), ("on", True), ("off", False)]
)
def test_kernels_are_for_cuda_unless_switched_off(
    value: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(SWITCH, value)
    assert kernels_wanted(CUDA) == wanted
    assert not kernels_wanted(CPU)


@pytest.mark.parametrize("value", ["0", "OFF", "false"])
def test_another_value_is_refused_and_not_taken_for_on(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, value)
    with pytest.raises(UserError, match=r"LITOTES_KERNELS=.*write on or off"):
        kernels_wanted(CUDA)
    assert not kernels_wanted(CPU)
