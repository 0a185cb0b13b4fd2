"""convolution: local patterns of three neighbouring pieces, then their mean.

Kim 2014, arXiv 1408.5882, with mean pooling.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from litotes.encoder.encoding import Encoding
from litotes.encoder.layout import Layout
from litotes.model.heads.head import Head
from litotes.model.heads.pooling import mean_by_text


class Convolution(Head):
    """c_t = ReLU(W [h_{t-1}; h_t; h_{t+1}] + b), y = W' (1/n Σ_t c_t) + b'; beyond a text's ends
    stand zeros.
    """

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        self.filters = nn.Linear(3 * width, width)

    def read(self, encoding: Encoding) -> Tensor:
        windows = neighbours(encoding.hidden, encoding.layout)  # (piece, 3 × width)
        features = torch.relu(self.filters(windows))  # (piece, width)
        return mean_by_text(features, encoding.layout)


def neighbours(packed: Tensor, layout: Layout) -> Tensor:
    """Each piece between its two neighbours of the same text.

    (piece, width) → (piece, 3 × width)
    """
    is_first = (layout.positions == 0)[:, None]
    is_last = (layout.positions == layout.counts[layout.texts] - 1)[:, None]
    before = packed.roll(1, 0).masked_fill(is_first, 0.0)
    after = packed.roll(-1, 0).masked_fill(is_last, 0.0)
    return torch.cat([before, packed, after], dim=-1)
