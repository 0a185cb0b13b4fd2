"""Where to compute."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.core.errors import UserError
from litotes.core.extras import has_extra

if TYPE_CHECKING:
    import torch

_GPUS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
"""Device files on Linux of what torch may call cuda: NVIDIA's cards and small boards, AMD's cards,
and the GPU inside the Windows Subsystem for Linux.
"""


def choose_device(name: str | None) -> torch.device:
    """The named device, cpu or cuda[:n]; without a name CUDA where there is one, else the CPU."""
    import torch

    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        # Setting the number of threads fixes it: otherwise MKL may take fewer, and sums are added
        # up in another order.
        torch.set_num_threads(torch.get_num_threads())
    elif not re.fullmatch(r"cuda(:\d+)?", name):
        raise UserError(f"There is no device {name!r}. Use cpu or cuda.")
    elif not torch.cuda.is_available():
        raise UserError(
            "This machine has no CUDA device (or torch was installed without it). Use --device cpu."
        )
    elif int(name.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise UserError(
            f"There is no device {name!r}: this machine has {torch.cuda.device_count()} CUDA"
            " devices, counted from 0."
        )
    return torch.device(name)


def is_cpu(name: str | None) -> bool:
    """Whether `choose_device` would take the CPU; torch, which takes seconds to import, is asked
    only where there might be another.
    """
    if name is not None:
        return name == "cpu"
    if sys.platform == "darwin":
        return True
    if sys.platform == "linux" and not any(Path(file).exists() for file in _GPUS):
        return True
    if not has_extra("train"):  # nothing here could use another
        return True
    return choose_device(None).type == "cpu"
