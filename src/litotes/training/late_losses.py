"""Losses on their way from the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor


class LateLosses:
    """Reads losses after the device has been given the next step, so that it never stands idle."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Tensor, torch.cuda.Event | None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, step: int, loss: Tensor) -> None:
        """step: its number."""
        if not loss.is_cuda:
            self._waiting.append((step, loss, None))
            return
        # a copy: a recorded step writes the next loss to the same place
        copy = torch.empty((), dtype=loss.dtype, pin_memory=True)
        copy.copy_(loss, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        self._waiting.append((step, copy, done))

    def read(self, *, all_but: int = 0) -> Iterator[tuple[int, float]]:
        """The numbers of steps and their losses, in order, up to the last `all_but`."""
        while len(self._waiting) > all_but:
            step, loss, done = self._waiting.popleft()
            if done is not None:
                done.synchronize()
            yield step, float(loss)
