"""bilstm: reads the pieces forwards and backwards.

Hochreiter and Schmidhuber 1997; Graves and Schmidhuber 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from litotes.encoder.encoding import Encoding
from litotes.model.heads.head import Head


class BiLSTM(Head):
    """z_t = [forward h_t; backward h_t], y = W z_1 + b: at the first piece the backward half has
    read the whole text, and the forward half that piece alone.
    """

    needs_lengths: ClassVar[bool] = True

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        # Each direction has half of the width, so that z_t is as wide as the encoder.
        self.lstm = nn.LSTM(width, width // 2, bidirectional=True)

    def read(self, encoding: Encoding) -> Tensor:
        texts = encoding.hidden.split(encoding.layout.lengths)
        if encoding.hidden.is_cuda:
            return self._both_ways(texts)
        forward = self._last_state([text[:1] for text in texts], "")
        backward = self._last_state([text.flip(0) for text in texts], "_reverse")
        return torch.cat([forward, backward], dim=1)  # (text, width)

    def _both_ways(self, texts: Sequence[Tensor]) -> Tensor:
        """As cuDNN computes it, both directions at the same time."""
        packed: PackedSequence = pack_sequence(list(texts), enforce_sorted=False)
        states, _ = self.lstm(packed)
        # torch packs step by step, longest text first: the first rows are every text's first step.
        firsts = states.data[: len(texts)]  # (text, width)
        return firsts[states.unsorted_indices]

    def _last_state(self, texts: Sequence[Tensor], direction: str) -> Tensor:
        """What one direction knows after its last step. direction: as torch names it.

        (text, width / 2)
        """
        packed = pack_sequence(list(texts), enforce_sorted=False)
        start = packed.data.new_zeros(1, len(texts), self.lstm.hidden_size)
        _, last, _ = torch.lstm(
            packed.data,
            packed.batch_sizes,
            (start, start),
            weights_of(self.lstm, direction),
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=self.training,
            bidirectional=False,
        )
        return last[0][packed.unsorted_indices]


def weights_of(lstm: nn.LSTM, direction: str) -> list[Tensor]:
    """In torch's order: the weights of inputs and of states, and the offsets of both."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(lstm, f"{name}_l0{direction}") for name in names]
