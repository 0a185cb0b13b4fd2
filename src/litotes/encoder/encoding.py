"""What an encoder makes of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from litotes.encoder.layout import Layout


@dataclass(frozen=True)
class Encoding:
    """What the encoder hands to the heads: hidden states (piece, width) of texts laid end to end.

    origin: the place each piece had in its text before a pruning took others away, (piece,); -1 for
    a piece that stands for those gone.
    """

    hidden: Tensor
    layout: Layout
    origin: Tensor
