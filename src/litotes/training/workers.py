"""How many runs work at a time, where nobody says.

A single run leaves a GPU idle while it reads, tokenizes, launches and writes; others use it then.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from litotes.core.machine import choose_device, is_cpu, n_cores
from litotes.encoder import pretrained

MOST = 6
"""More only take turns."""

BYTES_PER_PARAMETER = 48
"""Weights, gradients and AdamW's two averages take 16; the rest is for what a batch leaves behind.
"""

BYTES_PER_PROCESS = 2**30
"""What CUDA and its libraries keep for themselves."""

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
    """What a run of this encoder may take of a GPU's memory."""
    parameters = pretrained.load(encoder).encoder.parameters()
    n_parameters = sum(parameter.numel() for parameter in parameters)
    return BYTES_PER_PROCESS + BYTES_PER_PARAMETER * n_parameters
