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

import pytest
import torch
from torch.nn import Linear, Parameter

from litotes.core.errors import UserError
from litotes.core.storage import MANIFEST, is_complete, sha256_of
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
    tensors = RunTensors({"weight": weight}, {}, torch.optim.SGD([weight], lr=0.1))
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
    assert checkpoints.load(tensors) == RunState(step=1)
    assert weight.sum().item() == 10_000
    checkpoints.clear()
    assert checkpoints.load(tensors) is checkpoints.stored_key() is None
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("fused", [True, False])
def test_everything_is_restored_where_it_is_looked_for(fused: bool, tmp_path: Path) -> None:
    """Fused kernels want the count of steps next to the parameters; `meta` stands for a GPU."""
    states = []
    for device in ("cpu", "meta"):
        parameter = Parameter(torch.ones(2, device=device))
        optimizer = torch.optim.AdamW([parameter])
        optimizer.param_groups[0]["fused"] = fused and device == "meta"
        buffers = {"shares": torch.full((3,), float(device == "cpu"))}
        tensors = RunTensors({"w/eight": parameter}, buffers, optimizer)
        if device == "cpu":
            parameter.grad = torch.ones(2)
            optimizer.step()
            tensors.keep_best()
            parameter.data.zero_()
            Checkpoints(tmp_path, key="a").save(RunState(step=3), tensors)
        else:
            Checkpoints(tmp_path, key="b").load(tensors)
        states.append((tensors, optimizer.state[parameter]))
    (saved, _), (found, state) = states
    assert state["step"].device.type == ("meta" if fused else "cpu")
    assert fused or state["step"].item() == 1
    assert state["exp_avg"].device.type == state["exp_avg_sq"].device.type == "meta"
    torch.testing.assert_close(found.best, saved.best)
    assert (saved.best["w/eight"] < 1).all()
    assert found.buffers["shares"].tolist() == [1, 1, 1]


DAMAGED_STATES = [
    "[]",
    "{}",
    "[NaN]",
    json.dumps({"state": STATE}),
    json.dumps({"key": 5, "state": STATE}),
    json.dumps({"key": "a", "state": STATE | {"step": "many"}}),
    json.dumps({"key": "a", "state": STATE | {"history": 5}}),
    json.dumps({"key": "a", "state": STATE | {"loss_sum": None}}),
    '{"key": "a", "state": {"loss_sum": Infinity}}',
]


def test_a_damaged_state_is_a_sentence(tmp_path: Path) -> None:
    """Its hash fits, as after a change by hand."""
    parameters = trainable_parameters(Linear(2, 2))
    tensors = RunTensors(parameters, {}, torch.optim.SGD(parameters.values()))
    checkpoints = Checkpoints(tmp_path, key="a")
    checkpoints.save(RunState(step=3), tensors)
    assert checkpoints.load(tensors) == RunState(step=3)
    (folder,) = tmp_path.glob("step-*")
    hashes = json.loads((folder / MANIFEST).read_text())
    for content in DAMAGED_STATES:
        (folder / "state.json").write_text(content)
        hashes["state.json"] = sha256_of(folder / "state.json")
        (folder / MANIFEST).write_text(json.dumps(hashes))
        for read in (checkpoints.stored_key, lambda: checkpoints.load(tensors)):
            with pytest.raises(UserError, match=r"state\.json: damaged \(.+\)\. Delete .*step-"):
                read()


def test_damaged_scores_are_a_sentence(
    trained_folder: Path, tiny_recipe: Recipe, tmp_path: Path
) -> None:
    folder = copytree(trained_folder, tmp_path / "run")
    first, *others = json.loads((folder / "scores.json").read_text())
    changes = {"macro_f1": "good"}, {"interval": [0.5]}, {"classes": None}
    nameless = {key: value for key, value in first.items() if key != "cell"}
    for damaged in (5, [5], [{}], [nameless], *([first | one, *others] for one in changes)):
        (folder / "scores.json").write_text(json.dumps(damaged))
        with pytest.raises(UserError, match=r"scores\.json: damaged"):
            train(tiny_recipe, folder, resume=True)
