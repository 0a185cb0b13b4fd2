"""Where there is no CUDA device, kernels run in Triton's interpreter.

Triton asks for it once, when it is imported; so this imports it before any test file can.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
if find_spec("triton"):
    import triton.language


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Triton 3.6's interpreter makes numbers of arrays of one, which NumPy warns of up to 2.3 and
    refuses from 2.4 on (the extra `kernels` keeps it below).
    """
    here = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(here)


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
