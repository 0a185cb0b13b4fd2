"""bilstm: reads the pieces forwards and backwards.

Hochreiter and Schmidhuber 1997; Graves and Schmidhuber 2005.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from litotes.encoders.encoding import Encoding
from litotes.heads.head import Head


class BiLSTM(Head):
    """z_t = [forward h_t; backward h_t], y = W z_1 + b: at the first piece the backward half has
    read the whole text.
    """

    needs_lengths: ClassVar[bool] = True

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        # Each direction has half of the width, so that z_t is as wide as the encoder.
        self.lstm = nn.LSTM(width, width // 2, bidirectional=True)

    def read(self, encoding: Encoding) -> Tensor:
        texts = encoding.hidden.split(encoding.layout.lengths)
        packed: PackedSequence = pack_sequence(list(texts), enforce_sorted=False)
        states, _ = self.lstm(packed)
        # torch packs step by step, longest text first: the first rows are every text's first step.
        firsts = states.data[: encoding.layout.n_texts]  # (text, width)
        return firsts[states.unsorted_indices]
