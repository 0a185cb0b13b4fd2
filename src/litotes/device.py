"""Where to compute."""

from __future__ import annotations

import torch

from litotes.errors import UserError


def choose_device(name: str | None) -> torch.device:
    """The named device; without a name CUDA where there is one, else the CPU."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"There is no device {name!r}. Use cpu or cuda.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError("This machine has no CUDA device (or torch was installed without it). Use --device cpu.")
    return device
