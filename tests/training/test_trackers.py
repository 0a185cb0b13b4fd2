"""Curves elsewhere: every run is opened once, by the first process, and closed again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.training import run
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe
from litotes.training.run import train
from litotes.training.trainer import Trainer


class Killed(Exception):
    pass


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What MLflow and TensorBoard, neither of which need be installed, are told to do."""
    found: list[str] = []

    @contextmanager
    def opened(name: str) -> Iterator[Any]:
        found.append(f"open {name}")
        try:
            yield writer
        except BaseException:
            found.append(f"fail {name}")
            raise
        found.append(f"close {name}")

    def log_metrics(values: Mapping[str, float], step: int) -> None:
        found.append(f"step {step}: {' '.join(values)}")

    writer = ModuleType("writer")
    writer.add_scalar = lambda name, value, step: found.append(f"step {step}: {name}")
    writer.flush = lambda: None
    mlflow, tensorboard = ModuleType("mlflow"), ModuleType("torch.utils.tensorboard")
    mlflow.start_run = lambda run_name, nested: opened(run_name)
    mlflow.log_metrics = log_metrics
    tensorboard.SummaryWriter = lambda folder: opened(Path(folder).name)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", tensorboard)
    return found


@pytest.fixture
def recipe(tiny_recipe: Recipe) -> Callable[[str], Recipe]:
    return lambda tracker: tiny_recipe.changed(training__epochs=1, training__tracker=tracker)


@pytest.mark.slow
@pytest.mark.parametrize(("tracker", "name"), [("mlflow", "mine"), ("tensorboard", "tensorboard")])
def test_a_run_is_opened_told_and_closed(
    recipe: Callable[[str], Recipe], events: list[str], tmp_path: Path, tracker: str, name: str
) -> None:
    train(recipe(tracker), tmp_path / "mine")
    first, *lines, last = events
    assert (first, last) == (f"open {name}", f"close {name}")
    told = " ".join(line.partition(": ")[2] for line in lines)
    assert told == "epoch step loss held_out"


@pytest.mark.parametrize("tracker", ["mlflow", "tensorboard"])
def test_a_library_that_is_missing_is_a_sentence(
    recipe: Callable[[str], Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: str
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=f"pip install {tracker}"):
        train(recipe(tracker), tmp_path / "run")


@pytest.mark.slow
def test_a_run_that_breaks_off_is_told_so(
    recipe: Callable[[str], Recipe],
    events: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Trainer, "_end_epoch", lambda self: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed):
        train(recipe("mlflow"), tmp_path / "mine")
    assert events == ["open mine", "fail mine"]


@pytest.mark.slow
def test_other_processes_track_nothing(
    recipe: Callable[[str], Recipe],
    events: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "join_processes", lambda device: nullcontext(Processes(rank=1)))
    train(recipe("mlflow"), tmp_path / "mine")
    assert events == []
