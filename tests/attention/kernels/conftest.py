"""Where there is no CUDA device, kernels run in Triton's interpreter.

Triton asks for it once, when it is imported; so this imports it before any test file can.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if find_spec("triton"):
    import triton.language


@pytest.fixture(scope="session")
def device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    from triton.runtime.interpreter import InterpretedFunction

    if not isinstance(triton.language.sum, InterpretedFunction):
        pytest.skip(
            "Triton was imported before its interpreter was asked for: name this folder first"
        )
    return torch.device("cpu")
