"""Kernels run in Triton's interpreter where there is no CUDA device.

Triton asks for the interpreter when a kernel is declared; so this comes before any of ours is
imported, and a test session in which another file has imported one already is turned round here.
"""

from __future__ import annotations

import os
import sys

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")
