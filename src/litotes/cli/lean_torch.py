"""A command that only predicts starts in half the time without what torch's compiler needs.

`import torch` also registers, in Python, the shape of every operator's result: half of the import
time, and used only by `torch.compile`, `torch.export` and tensors without data. While the block
below runs, an empty module takes its place; afterwards that is removed, so that a later import gets
the real one. If torch is imported already, or does not import this module, nothing changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_SHAPES = "torch._meta_registrations"


@contextmanager
def lean_torch() -> Iterator[None]:
    """Imports of torch within the block leave out the shapes."""
    if "torch" in sys.modules:
        yield
        return
    sys.modules[_SHAPES] = ModuleType(_SHAPES)
    try:
        yield
    finally:
        del sys.modules[_SHAPES]
