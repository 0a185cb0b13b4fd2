"""What a backward pass reads and writes, whichever kernels do it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Remembered:
    """What a forward pass leaves to its backward. row_numbers: (3, attention_head, piece).

    mixed: what came out, (piece, attention_head, head_width). chosen: (attention_head, piece,
    word).
    """

    row_numbers: Tensor
    mixed: Tensor
    chosen: Tensor | None
    dropout: float
    seed: Tensor | None


@dataclass(frozen=True)
class Towards:
    """Where gradients go, zeros before.

    query, key, value: (piece, attention_head, head_width). alpha: (attention_head, piece), None
    where α is not learned.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    alpha: Tensor | None = None
