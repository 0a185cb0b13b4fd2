"""What figures belong to: the processor, the cores this process may use, memory, and the versions
of everything that computes.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from litotes.core.processor import n_cores, this_processor
from litotes.core.version import __version__

LIBRARIES = (
    "torch",
    "onnxruntime",
    "transformers",
    "tokenizers",
    "numpy",
    "entmax",
    "torchjd",
    "ctranslate2",
    "openvino",
)
GPU_LIBRARIES = ("triton", "adasplash")


def machine() -> dict[str, Any]:
    """What does not change while a machine works; what is unknown or not installed is left out."""
    processor = this_processor()
    found = {
        "processor": platform.machine(),
        "model": processor.name,
        "features": ", ".join(sorted(processor.features)) or None,
        "n_cores": n_cores(),
        "n_threads": torch.get_num_threads(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
        "litotes": __version__,
        **{library: _version(library) for library in LIBRARIES},
    }
    return {name: value for name, value in found.items() if value is not None}


def machine_now() -> dict[str, Any]:
    """The same and how busy it is: the mean number of processes that wanted to run in the last 1, 5
    and 15 minutes.
    """
    if not hasattr(os, "getloadavg"):  # Windows
        return machine()
    return machine() | {"load_average": [round(load, 2) for load in os.getloadavg()]}


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
        **{library: _version(library) for library in GPU_LIBRARIES},
    }
    return {name: value for name, value in facts.items() if value is not None}


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # Windows; a system that does not say
        return None


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
