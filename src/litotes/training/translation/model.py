"""An encoder and a decoder: a source text in, the logits of every next piece out.

    p(y_t | y_<t, x) = softmax(E h_t + b)

with h_t of the decoder and E the table of pieces, the same as that of its input (Press and Wolf
2017, arXiv 1608.05859) unless the spec says otherwise.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.encoder.attention.observer import Observer
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.walk import Encoding
from litotes.kernels.encode import encode
from litotes.training.translation.attention import DecoderObserver
from litotes.training.translation.cache import Cache
from litotes.training.translation.decoder import Decoder
from litotes.training.translation.spec import DecoderSpec


class EncoderDecoder(nn.Module):
    """Batch of sources, targets so far → logits of the next pieces."""

    def __init__(self, encoder: Encoder, spec: DecoderSpec) -> None:
        super().__init__()
        self.spec, self.encoder = spec, encoder
        shared = encoder.embeddings.piece if spec.tied == "all" else None
        if shared is not None and shared.weight.shape != (spec.n_vocabulary, spec.width):
            raise UserError(
                f"The encoder's table of pieces is {tuple(shared.weight.shape)}, the decoder's"
                f" ({spec.n_vocabulary}, {spec.width}): they cannot be one. Set model.tied ="
                " \"target\", or the decoder's width to that of the encoder's embeddings."
            )
        self.decoder = Decoder(spec, shared)
        self.bias = nn.Parameter(torch.zeros(spec.n_vocabulary))
        is_own = spec.tied == "none"
        self.output = nn.Embedding(spec.n_vocabulary, spec.width) if is_own else None

    @property
    def device(self) -> torch.device:
        return self.bias.device

    @property
    def output_table(self) -> Tensor:
        """(piece of the vocabulary, width)"""
        return (self.output or self.decoder.embeddings.piece).weight

    def read(self, batch: Batch, *, observer: Observer | None = None) -> Encoding:
        """What the encoder makes of the sources."""
        return encode(self.encoder, batch, observer=observer)

    def forward(
        self,
        batch: Batch,
        pieces: Tensor,
        layout: Layout,
        *,
        observer: DecoderObserver | None = None,
    ) -> Tensor:
        """Logits of the piece after each piece of the packed targets. (piece, vocabulary)"""
        return self.guess(self.decoder(pieces, layout, self.read(batch), observer=observer))

    def guess(self, hidden: Tensor) -> Tensor:
        """(piece, width) → (piece, vocabulary)"""
        return functional.linear(hidden, self.output_table, self.bias)

    def step(self, pieces: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities of the next piece of every row, (row, vocabulary), and the cache with
        `pieces` (row,) in it.
        """
        hidden, cache = self.decoder.step(pieces, cache)
        return self.guess(hidden).float().log_softmax(-1), cache

    def set_progress(self, progress: float) -> None:
        self.encoder.set_progress(progress)
        self.decoder.set_progress(progress)


def draw_weights(module: nn.Module, *, keep: nn.Module | None = None) -> None:
    """New weights: linear layers as Glorot and Bengio 2010 draw them, tables of pieces so that a
    row has about length 1; a table of fixed positions stays.

    keep: a part that stays as it is.
    """
    for part in module.modules():
        if part is keep:
            continue
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        if isinstance(part, nn.Embedding) and part.weight.requires_grad:
            nn.init.normal_(part.weight, std=1 / math.sqrt(part.embedding_dim))
