"""What figures belong to: the processor, the cores this process may use, memory, and the versions of everything that computes."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from litotes import __version__

LIBRARIES = ("torch", "onnxruntime", "transformers", "tokenizers", "numpy", "entmax", "torchjd")


def machine() -> dict[str, Any]:
    """What does not change while a machine works; what is not known on it, or not installed, is left out."""
    found = {
        "processor": platform.machine(),
        "model": _model_name(),
        "n_cores": n_cores(),
        "n_threads": torch.get_num_threads(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
        "litotes": __version__,
        **{library: _version(library) for library in LIBRARIES},
    }
    return {name: value for name, value in found.items() if value is not None}


def machine_now() -> dict[str, Any]:
    """The same with how busy it is: the number of processes that wanted to run in the last 1, 5 and 15 minutes."""
    if not hasattr(os, "getloadavg"):  # Windows
        return machine()
    return machine() | {"load_average": [round(load, 2) for load in os.getloadavg()]}


def n_cores() -> int:
    """The cores this process may use, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _model_name() -> str | None:
    """As the maker calls it; Linux on ARM gives numbers alone, of which the part says the most."""
    file = Path("/proc/cpuinfo")
    if not file.is_file():
        return platform.processor() or None
    lines = [line.partition(":") for line in file.read_text("utf-8", errors="replace").splitlines()]
    known = {name.strip(): value.strip() for name, _, value in lines}
    return known.get("model name") or (f"CPU part {known['CPU part']}" if "CPU part" in known else None)


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
