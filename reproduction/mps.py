"""NVIDIA's service that lets kernels of several processes run on a GPU at the same time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def start_mps() -> bool:
    """Kernels of several processes at once; False, and nothing changed, where it does not work."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        return False
    names = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps", "CUDA_MPS_LOG_DIRECTORY": "/tmp/mps-log"}  # noqa: S108
    for name, folder in names.items():
        Path(folder).mkdir(exist_ok=True)
        os.environ[name] = folder
    try:
        subprocess.run([control, "-d"], check=True, timeout=20)  # noqa: S603
        probe = "import torch; print(float(torch.ones(8, device='cuda').sum()))"
        subprocess.run([sys.executable, "-c", probe], check=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without MPS: {error}")
        stop_mps()
        for name in names:
            del os.environ[name]
        return False
    return True


def stop_mps() -> None:
    control = shutil.which("nvidia-cuda-mps-control")
    if control is not None:
        subprocess.run([control], input=b"quit\n", check=False, timeout=60)  # noqa: S603
