"""The state of a training run, kept so that a killed run goes on as if nothing had happened.

Tensors go to safetensors, numbers to JSON, both into a folder that is staged, flushed and renamed
(storage.py). Randomness is no
state: every step draws from a generator seeded by (seed, step, process), and every epoch's order
from (seed, epoch).
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import Optimizer

from litotes.core.json_text import read_as, to_json
from litotes.core.storage import clear_staged, is_complete, remove_folder, write_folder

KEPT = 2
"""Checkpoints kept on disk: should the newest be damaged, the one before it still is there."""


@dataclass
class RunState:
    """The numbers of a run: what comes next, what was best, what happened so far."""

    step: int = 0  # steps done in all
    epoch: int = 0  # the epoch under way, from 0
    place: int = 0  # steps done in it
    loss_sum: float = 0.0  # of the epoch under way
    best_score: float | None = None
    best_epoch: int | None = None
    n_waited: int = 0  # epochs since the best one
    finished: bool = False
    seconds: float = 0.0  # spent in training steps
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class RunTensors:
    """The tensors of a run under way: what learns, what is stored with it (`buffers`), and the best
    weights so far.
    """

    parameters: dict[str, Parameter]
    buffers: dict[str, Tensor]
    optimizer: Optimizer
    best: dict[str, Tensor] = field(default_factory=dict)

    def keep_best(self) -> None:
        """Remembers the weights as they are."""
        self.best = {name: own.detach().clone() for name, own in self.parameters.items()}


class Checkpoints:
    """The checkpoints of one run, in a folder of their own."""

    def __init__(self, folder: Path, *, key: str) -> None:
        self.folder, self.key = folder, key

    def save(self, state: RunState, tensors: RunTensors) -> None:
        target = self.folder / f"step-{state.step:09d}"
        if is_complete(target):
            return
        if target.exists():
            remove_folder(target)

        def fill(folder: Path) -> None:
            try:
                save_file(_named(tensors), folder / "state.safetensors")
            except SafetensorError as error:
                raise _as_system_error(error) from error
            content = to_json(asdict(_StateFile(self.key, state)))
            (folder / "state.json").write_text(content, "utf-8")

        write_folder(target, fill)
        for old in self._all()[:-KEPT]:
            remove_folder(old)

    def load(self, tensors: RunTensors) -> RunState | None:
        """Restores the newest whole checkpoint of this very recipe and says where it stood; None
        when there is none.
        """
        clear_staged(self.folder)
        if (newest := self._newest()) is None:
            return None
        folder, stored = newest
        _restore(load_file(folder / "state.safetensors"), tensors)
        return stored.state

    def stored_key(self) -> str | None:
        """The key of the run these checkpoints belong to; None when there are none."""
        newest = self._newest()
        return None if newest is None else newest[1].key

    def clear(self) -> None:
        clear_staged(self.folder)
        for folder in self._all():
            remove_folder(folder)
        if self.folder.is_dir():
            self.folder.rmdir()

    def _newest(self) -> tuple[Path, _StateFile] | None:
        """The newest checkpoint that is whole, and what it states."""
        for folder in filter(is_complete, reversed(self._all())):
            advice = f"Delete {folder} to go on from the checkpoint before it."
            return folder, read_as(folder / "state.json", _StateFile, advice=advice)
        return None

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"))


@dataclass(frozen=True)
class _StateFile:
    """The content of `state.json`."""

    key: str
    state: RunState


def trainable_parameters(module: nn.Module, prefix: str = "") -> dict[str, Parameter]:
    """The parameters that learn, by name."""
    return {
        f"{prefix}{name}": parameter
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    }


def _named(tensors: RunTensors) -> dict[str, Tensor]:
    named = {f"best/{name}": tensor for name, tensor in tensors.best.items()}
    named |= {f"buffer/{name}": tensor for name, tensor in tensors.buffers.items()}
    for name, parameter in tensors.parameters.items():
        named[f"model/{name}"] = parameter.detach()
        for key, value in tensors.optimizer.state.get(parameter, {}).items():
            named[f"optimizer/{name}/{key}"] = value
    return {name: tensor.cpu().contiguous().clone() for name, tensor in named.items()}


def _as_system_error(error: SafetensorError) -> Exception:
    """The error of the system, such as that of a full disk, that safetensors only quotes."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return error if number is None else OSError(int(number[1]), os.strerror(int(number[1])))


def _restore(named: dict[str, Tensor], tensors: RunTensors) -> None:
    # Adam's averages are on the parameter's device; its count of steps only in its fused form.
    is_fused = any(group.get("fused") for group in tensors.optimizer.param_groups)
    for full_name, tensor in named.items():
        kind, _, name = full_name.partition("/")
        if kind == "best":
            tensors.best[name] = tensor
        elif kind == "optimizer":
            name, _, key = name.rpartition("/")
            parameter = tensors.parameters[name]
            on_host = key == "step" and not is_fused
            tensors.optimizer.state[parameter][key] = (
                tensor if on_host else tensor.to(parameter.device)
            )
        else:
            kept = tensors.buffers if kind == "buffer" else tensors.parameters
            kept[name].data.copy_(tensor)
