"""Fine-tuned weights as a small difference from a bundled encoder's.

Training moves a weight by a hundredth of its size, so the difference D = W − W₀ of a matrix can be
stored in coarser steps than W itself. Row by row

    W ≈ W₀ + s · q,    s = max |D| / 127,    q = round(D / s) in −127 … 127

takes one byte per weight instead of four, and is off by at most s / 2: a few millionths of a
typical weight's size.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from litotes.core.errors import UserError

_STEPS, _SIZE = "difference.steps.", "difference.size."
_MOST = 127


def to_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices that the base has as well become steps away from it; others stay as they are."""
    result: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or name not in base or base[name].shape != tensor.shape:
            result[name] = tensor
            continue
        result[_SIZE + name], result[_STEPS + name] = _quantise(tensor - base[name])
    return result


def _quantise(moved: Tensor) -> tuple[Tensor, Tensor]:
    """A step's size (row, 1), and how many of them. (row, column)"""
    largest = moved.abs().amax(1, keepdim=True)
    size = (largest / _MOST).clamp_min(torch.finfo(torch.float32).tiny)
    return size, (moved / size).round().to(torch.int8)


def from_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they were, to within half a step."""
    whole, differences = {}, []
    for key, tensor in tensors.items():
        if key.startswith(_STEPS):
            differences.append(key.removeprefix(_STEPS))
        elif not key.startswith(_SIZE):
            whole[key] = tensor
    for name in differences:
        steps, size, start = tensors[_STEPS + name], tensors.get(_SIZE + name), base.get(name)
        if size is None or start is None or not _fits(steps, size, start):
            raise UserError(
                f"The difference of {name!r} does not fit the encoder it is taken from. Copy the"
                " model folder again."
            )
        whole[name] = start + steps * size  # (row, column)
    return whole


def _fits(steps: Tensor, size: Tensor, start: Tensor) -> bool:
    if steps.dtype != torch.int8 or steps.shape != start.shape:
        return False
    return size.shape == (len(start), 1)
