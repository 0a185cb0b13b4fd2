"""Ways to let a command start sooner."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_SHAPES = "torch._meta_registrations"


@contextmanager
def lean_torch() -> Iterator[None]:
    """Lets `import torch` leave out what only its compiler needs: half of the import time.

    It registers, in Python, the shape of every operator's result, which only `torch.compile`,
    `torch.export` and tensors without data use. Within the block an empty module takes its place;
    afterwards that is removed, so that a later import gets the real one. If torch is imported
    already, or does not import this module, nothing changes.
    """
    if "torch" in sys.modules:
        yield
        return
    sys.modules[_SHAPES] = ModuleType(_SHAPES)
    try:
        yield
    finally:
        del sys.modules[_SHAPES]


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pauses garbage collection: what imports make stays, and a search only delays the answer."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
