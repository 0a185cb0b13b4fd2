"""A command that only answers starts in half the time without what torch's compiler needs.

`import torch` also registers, in Python, what shape every operator's result would have: half of the
import, and used only by `torch.compile`, `torch.export` and tensors without data. While the block
below runs, an empty module stands in its place; afterwards it is gone again, so that whoever asks
for the real one gets it. A torch that does not import it, or is there already, is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_SHAPES = "torch._meta_registrations"


@contextmanager
def lean_torch() -> Iterator[None]:
    """torch, if it is imported in here, comes without its Python shapes."""
    if "torch" in sys.modules:
        yield
        return
    sys.modules[_SHAPES] = ModuleType(_SHAPES)
    try:
        yield
    finally:
        del sys.modules[_SHAPES]
