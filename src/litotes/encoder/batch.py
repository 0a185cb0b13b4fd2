"""A batch of texts, packed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from litotes.encoder.layout import Layout


@dataclass(frozen=True)
class Batch:
    """Texts laid end to end. pieces, segments: (piece,)"""

    pieces: Tensor
    segments: Tensor
    layout: Layout
