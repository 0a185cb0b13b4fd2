"""Fine-tuned weights as a small difference from weights that everybody has.

Training moves a weight by a hundredth of its size, so the difference D = W − W₀ of a matrix bears
coarser steps than W itself. Row by row

    W ≈ W₀ + s · q,    s = max |D| / 127,    q = round(D / s) in −127 … 127

takes a byte a weight instead of four, and is wrong by at most s / 2: a few millionths of a typical
weight's size.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from litotes.core.errors import UserError

_STEPS, _SIZE = "difference.steps.", "difference.size."
_MOST = 127


def to_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The matrices that the base has as well, in steps away from it; everything else as it is."""
    kept: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or name not in base or base[name].shape != tensor.shape:
            kept[name] = tensor
            continue
        moved = tensor - base[name]  # (row, column)
        # (row, 1)
        size = (moved.abs().amax(1, keepdim=True) / _MOST).clamp_min(
            torch.finfo(torch.float32).tiny
        )
        kept[_SIZE + name] = size
        kept[_STEPS + name] = (moved / size).round().to(torch.int8)
    return kept


def from_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they were, to within half a step."""
    whole = {
        name: tensor for name, tensor in tensors.items() if not name.startswith((_STEPS, _SIZE))
    }
    for key, steps in tensors.items():
        if not key.startswith(_STEPS):
            continue
        name = key.removeprefix(_STEPS)
        size, start = tensors.get(_SIZE + name), base.get(name)
        if (
            size is None
            or start is None
            or steps.dtype != torch.int8
            or steps.shape != start.shape
            or size.shape != (len(start), 1)
        ):
            raise UserError(
                f"The difference of {name!r} does not fit the encoder it is taken from. Copy the"
                " model folder again."
            )
        whole[name] = start + steps * size  # (row, column)
    return whole
