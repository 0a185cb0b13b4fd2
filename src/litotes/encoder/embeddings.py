"""What goes into the first layer: the embeddings of pieces, and MPNet's bias by distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.encoder.batch import Batch
from litotes.encoder.spec import EncoderSpec


def make_norm(spec: EncoderSpec) -> nn.LayerNorm:
    """A norm of hidden states."""
    return nn.LayerNorm(spec.width, eps=spec.norm_epsilon, bias=spec.norm_bias)


class Embeddings(nn.Module):
    """What a piece is and, where a family has such tables, where it stands and (in a pair) which
    text it belongs to.
    """

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        width = spec.embedding_width or spec.width
        self.first_position = spec.first_position
        self.piece = nn.Embedding(spec.n_vocabulary, width)
        self.position = nn.Embedding(spec.n_positions, width) if spec.has_positions else None
        self.segment = nn.Embedding(spec.n_segments, width) if spec.n_segments else None
        self.norm = nn.LayerNorm(width, eps=spec.norm_epsilon, bias=spec.norm_bias)
        self.dropout = nn.Dropout(spec.dropout)
        self.projection = nn.Linear(width, spec.width) if spec.has_projection else None

    def forward(self, batch: Batch) -> Tensor:
        return self.of(batch.pieces, batch.layout.positions, batch.segments)

    def of(self, pieces: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """All three (piece,), positions from 0."""
        hidden = self.piece(pieces)  # (piece, embedding_width)
        if self.position is not None:
            hidden = hidden + self.position(positions + self.first_position)
        if self.segment is not None:
            # RoBERTa has a single segment, whatever the tokenizer says of a pair.
            segments = segments.clamp(max=self.segment.num_embeddings - 1)
            hidden = hidden + rows_of_few(self.segment.weight, segments)
        hidden = self.dropout(self.norm(hidden))
        return hidden if self.projection is None else self.projection(hidden)  # (piece, width)


def rows_of_few(table: Tensor, numbers: Tensor) -> Tensor:
    """The rows (number, width) of a table that has very few.

    On a GPU torch adds up the gradient of a row that thousands of pieces share in no fixed order,
    and two runs of one seed would differ; a product with 0 and 1 is summed the same way every time.
    """
    if table.device.type != "cuda" or not torch.is_grad_enabled():
        return functional.embedding(numbers, table)
    return weighted_rows(table, numbers)


def weighted_rows(table: Tensor, numbers: Tensor) -> Tensor:
    """Each row times 1 where it is meant, times 0 where it is not. (number, width)"""
    rows = torch.arange(len(table), device=numbers.device)
    is_meant = (numbers[:, None] == rows).to(table.dtype)  # (number, row)
    return (is_meant[:, :, None] * table).sum(1)


class RelativeBias(nn.Module):
    """MPNet's bias by distance: exact for near pieces, logarithmic buckets up to 128 (Raffel et al.
    2020, arXiv 1910.10683, §2.1).
    """

    FARTHEST = 128

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.by_bucket = nn.Embedding(spec.n_relative_buckets, spec.n_attention_heads)

    def forward(self, places: Tensor) -> Tensor:
        """places: where the pieces of each row stood in their text, (text, piece)."""
        ahead = places[:, None, :] - places[:, :, None]  # (text, query, key)
        # (text, attention_head, query, key)
        return self.by_bucket(self._bucket(ahead)).permute(0, 3, 1, 2)

    def bucket_by_distance(self, farthest: int) -> Tensor:
        """The bucket of every distance from −farthest to farthest. (2 × farthest + 1,)"""
        device = self.by_bucket.weight.device
        return self._bucket(torch.arange(-farthest, farthest + 1, device=device)).int()

    def _bucket(self, ahead: Tensor) -> Tensor:
        half = self.by_bucket.num_embeddings // 2  # one half looks back, the other ahead
        exact = half // 2
        distance = ahead.abs()
        # The clamp keeps log(0) out; distances under `exact` do not use the value.
        logarithm = torch.log(distance.clamp(min=1) / exact)
        stretch = logarithm / math.log(self.FARTHEST / exact) * (half - exact)
        far = (exact + stretch.long()).clamp(max=half - 1)
        return torch.where(distance < exact, distance, far) + half * (ahead > 0)
