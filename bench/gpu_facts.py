"""What belongs to a measurement on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from litotes.core.machine import library_version

LIBRARIES = ("triton", "adasplash")


def gpu_facts(device: torch.device) -> dict[str, Any]:
    """The GPU's name, memory and processors, and what its kernels are compiled by; nothing where
    the device is no GPU.
    """
    if device.type != "cuda":
        return {}
    found = torch.cuda.get_device_properties(device)
    facts = {
        "gpu": found.name,
        "gpu_memory_gb": round(found.total_memory / 2**30, 1),
        "gpu_processors": found.multi_processor_count,
        "cuda": torch.version.cuda,
        **{library: library_version(library) for library in LIBRARIES},
    }
    return {name: value for name, value in facts.items() if value is not None}
