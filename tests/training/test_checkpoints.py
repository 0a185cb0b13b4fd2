"""Checkpoints that the disk has no room for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.nn import Parameter

from litotes.core.errors import UserError
from litotes.core.storage import is_complete
from litotes.training.checkpoints import Checkpoints, RunState, RunTensors


@contextmanager
def file_size_limit(n_bytes: int) -> Iterator[None]:
    """What is longer cannot be written, as on a full disk; Python ignores the signal for it."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_a_sentence_and_the_last_checkpoint_stays(tmp_path: Path) -> None:
    weight = Parameter(torch.ones(10_000))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    tensors = RunTensors({"weight": weight}, {}, optimizer)
    checkpoints = Checkpoints(tmp_path / "checkpoints", key="key")
    checkpoints.save(RunState(step=1), tensors)
    weight.data.zero_()
    with (
        file_size_limit(20_000),
        pytest.raises(UserError, match=r"step-000000002 cannot be written \(File too large\)"),
    ):
        checkpoints.save(RunState(step=2), tensors)
    assert os.listdir(tmp_path / "checkpoints") == ["step-000000001"]
    assert is_complete(tmp_path / "checkpoints" / "step-000000001")
    state = checkpoints.load(tensors)
    assert state is not None
    assert (state.step, weight.sum().item()) == (1, 10_000)
