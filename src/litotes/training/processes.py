"""Several processes as one: `torchrun --nproc-per-node N -m litotes train …`.

Every process holds the whole model and takes its share of each batch; gradients are added up. Since
the loss is divided by the whole batch's normaliser (losses.py), N processes take the same step as
one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, distributed

from litotes.core.machine import choose_device, is_cpu, n_cores
from litotes.core.storage import locked
from litotes.encoder import pretrained

Item = TypeVar("Item")  # Python 3.11 has no `def share[Item]`


@dataclass(frozen=True)
class Processes:
    """This process's number and how many there are."""

    rank: int = 0
    n: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, batch: Sequence[Item]) -> Sequence[Item]:
        """This process's part of a batch."""
        return batch[self.rank :: self.n]

    def add_up(self, gradients: Iterable[Tensor | None]) -> None:
        """Replaces each gradient by the sum over all processes."""
        if self.n == 1:
            return
        tensors = [gradient for gradient in gradients if gradient is not None]
        # one message instead of a hundred
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(flat)
        for tensor, part in zip(
            tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True
        ):
            tensor.copy_(part.view_as(tensor))

    def total(self, value: float) -> float:
        """The sum of a number over all processes."""
        if self.n == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64)
        if distributed.get_backend() == "nccl":
            tensor = tensor.cuda()
        distributed.all_reduce(tensor)
        return float(tensor)

    def wait(self) -> None:
        if self.n > 1:
            distributed.barrier()


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Joins the other processes when started by torchrun; alone otherwise."""
    if "LOCAL_RANK" not in os.environ:
        yield Processes()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield Processes(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()


@contextmanager
def hold_folder(folder: Path, processes: Processes) -> Iterator[None]:
    """The folder of a run: the first process makes and locks it, the others wait for it."""
    with locked(folder) if processes.is_first else nullcontext():
        processes.wait()
        yield


# How many runs work at a time, where no one says.
#
# A single run leaves a GPU idle while it reads, tokenizes, launches and writes; others use it
# then.

MOST = 6
"""More only take turns."""

BYTES_PER_PARAMETER = 48
"""Weights, gradients and AdamW's two averages take 16; the rest is for what a batch leaves behind.
"""

BYTES_PER_PROCESS = 2**30
"""The memory that CUDA and its libraries keep for themselves."""

CORES_PER_RUN = 2
"""One prepares steps, the other tokenizes, reads and writes."""


def choose_workers(encoders: Iterable[str], device: str | None) -> int:
    """One on a CPU, whose cores a run uses by itself; as many as a GPU has memory for."""
    if is_cpu(device):
        return 1
    free, _ = torch.cuda.mem_get_info(choose_device(device))
    largest = max(bytes_of_run(encoder) for encoder in set(encoders))
    return max(1, min(MOST, n_cores() // CORES_PER_RUN, free // largest))


def bytes_of_run(encoder: str) -> int:
    """Estimates the GPU memory of a run of this encoder."""
    parameters = pretrained.load(encoder).encoder.parameters()
    n_parameters = sum(parameter.numel() for parameter in parameters)
    return BYTES_PER_PROCESS + BYTES_PER_PARAMETER * n_parameters
