"""How many runs share a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from litotes.training import processes
from litotes.training.processes import bytes_of_run, choose_workers


def test_a_run_on_a_cpu_has_it_for_itself() -> None:
    assert choose_workers(["nobody asks"], "cpu") == 1


@pytest.mark.parametrize(
    ("n_cores", "room_for", "expected"),
    [(16, 3.5, 3), (4, 9, 2), (1, 9, 1), (64, 99, 6), (8, 0, 1)],
)
def test_a_gpu_is_shared_by_as_many_as_it_holds(
    n_cores: int,
    room_for: float,
    expected: int,
    tiny_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = str(tiny_folder)
    free = int(room_for * bytes_of_run(encoder))
    monkeypatch.setattr(processes, "n_cores", lambda: n_cores)
    monkeypatch.setattr(processes, "choose_device", torch.device)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 2 * free))
    assert choose_workers([encoder, encoder], "cuda") == expected
