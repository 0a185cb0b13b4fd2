"""Whether kernels are wanted is known without Triton and without a GPU."""

from __future__ import annotations

import pytest
import torch

from litotes.core.errors import UserError
from litotes.kernels import encode as encoding_by
from litotes.kernels.encode import SWITCH, kernels_wanted

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def _with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_by, "find_spec", lambda name: name)


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
