"""A study that is resumed computes as it began, whatever the number of workers is now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from litotes.core.errors import UserError
from litotes.study import runs as execution
from litotes.study import runs as job
from litotes.study.plan import Study, read_study
from litotes.study.runs import execute
from litotes.training.course import Run


@pytest.fixture
def study(tmp_path: Path, tiny_folder: Path) -> Study:
    file = tmp_path / "threads.toml"
    file.write_text(
        'name = "Threads"\n[recipe.model]\n'
        f'encoder = "{tiny_folder}"\nmax_pieces = 8\n'
        '[recipe.training]\nepochs = 1\n[[experiment]]\nname = "Two"\n'
        'set = { "data.tasks" = ["sentiment"] }\n'
        'grid = { "data.where.variety" = ["en-AU", "en-UK"] }\n'
    )
    return read_study(file)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """With how many threads each run was trained."""
    used: list[int] = []

    def train(*arguments: Any, **options: Any) -> Run:
        used.append(torch.get_num_threads())
        return original(*arguments, **options)

    original = job.train
    before = torch.get_num_threads()
    monkeypatch.setattr(job, "train", train)
    yield used
    torch.set_num_threads(before)


def test_a_resumed_study_computes_with_as_many_threads(
    study: Study, threads: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def stop_after_first(what: str, done: int, total: int, note: str) -> None:
        if (what, done) == ("runs", 1):
            raise KeyboardInterrupt

    torch.set_num_threads(2)
    with pytest.raises(KeyboardInterrupt):
        execute(study, out, device="cpu", watch=stop_after_first)
    assert threads == [2]
    assert json.loads((out / "runs" / "threads.json").read_text()) == {"n_threads": 2}
    torch.set_num_threads(1)
    runs = execute(study, out, device="cpu")
    assert (runs.n_found, runs.failures) == (1, {})
    assert threads == [2, 2]
    assert torch.get_num_threads() == 1  # for this process nothing has changed


@pytest.mark.parametrize(
    ("on", "n_workers", "expected"), [("here", 1, 2), ("here", 3, 5), ("ray", 1, 1)]
)
def test_threads_are_chosen_when_a_study_begins(
    on: str,
    n_workers: int,
    expected: int,
    tmp_path: Path,
    threads: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.set_num_threads(2)
    monkeypatch.setattr(execution, "threads_per_worker", lambda n_workers: 5)
    file = tmp_path / "threads.json"
    assert execution._n_threads(file, n_workers, on) == expected
    assert execution._n_threads(file, 7, "here") == expected
    for damaged in (
        "",
        "[]",
        "{}",
        '{"n_threads": -1}',
        '{"n_threads": "2"}',
        '{"n_threads": 1e9}',
    ):
        file.write_text(damaged)
        with pytest.raises(UserError, match="damaged"):
            execution._n_threads(file, n_workers, on)
