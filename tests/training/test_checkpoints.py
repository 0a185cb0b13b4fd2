"""Checkpoints that the disk has no room for; damaged values of a checkpoint and of a run's scores
are sentences.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from torch.nn import Linear, Parameter

from litotes.core.errors import UserError
from litotes.core.storage import MANIFEST, is_complete, sha256_of
from litotes.evaluation.evaluate import CellScores
from litotes.training.checkpoints import Checkpoints, RunState, RunTensors, trainable_parameters
from litotes.training.recipe import Recipe
from litotes.training.run import train

STATE = {"step": 3, "epoch": 0}


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


def tensors() -> RunTensors:
    parameters = trainable_parameters(Linear(2, 2))
    return RunTensors(parameters, {}, torch.optim.SGD(parameters.values()))


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        "[NaN]",
        json.dumps({"state": STATE}),
        json.dumps({"key": 5, "state": STATE}),
        json.dumps({"key": "a", "state": STATE | {"step": "many"}}),
        json.dumps({"key": "a", "state": STATE | {"history": 5}}),
        json.dumps({"key": "a", "state": STATE | {"loss_sum": None}}),
        '{"key": "a", "state": {"loss_sum": Infinity}}',
    ],
)
def test_a_damaged_state_is_a_sentence(content: str, tmp_path: Path) -> None:
    """Its hash fits, as after a change by hand."""
    checkpoints = Checkpoints(tmp_path, key="a")
    checkpoints.save(RunState(step=3), tensors())
    assert checkpoints.load(tensors()) == RunState(step=3)
    (folder,) = tmp_path.glob("step-*")
    (folder / "state.json").write_text(content)
    hashes = json.loads((folder / MANIFEST).read_text())
    hashes["state.json"] = sha256_of(folder / "state.json")
    (folder / MANIFEST).write_text(json.dumps(hashes))
    for read in (checkpoints.stored_key, lambda: checkpoints.load(tensors())):
        with pytest.raises(UserError, match=r"state\.json: damaged \(.+\)\. Delete .*step-"):
            read()


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: 5,
        lambda rows: [5],
        lambda rows: [{}],
        lambda rows: [rows[0] | {"macro_f1": "good"}],
        lambda rows: [rows[0] | {"interval": [0.5]}],
        lambda rows: [rows[0] | {"classes": None}],
        lambda rows: [{key: rows[0][key] for key in rows[0] if key != "cell"}],
    ],
)
def test_damaged_scores_are_a_sentence(
    damage: Any, trained_folder: Path, tiny_recipe: Recipe, tmp_path: Path
) -> None:
    folder = copytree(trained_folder, tmp_path / "run")
    rows = json.loads((folder / "scores.json").read_text())
    assert [CellScores.from_json(row).as_json() for row in rows] == [
        row | {"interval": tuple(row["interval"]), "classes": tuple(row["classes"])} for row in rows
    ]
    (folder / "scores.json").write_text(json.dumps(damage(rows)))
    with pytest.raises(UserError, match=r"scores\.json: damaged"):
        train(tiny_recipe, folder, resume=True)
