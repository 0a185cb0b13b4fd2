"""The encoder: embeddings, then blocks of attention and feed-forward, over texts laid end to end.

    h₀      = norm(piece + position + segment)
    a_l     = norm(h_l + Attention(h_l))
    h_{l+1} = norm(a_l + W₂ act(W₁ a_l))

Post-norm Transformer encoder: Vaswani et al. 2017 (arXiv 1706.03762), Devlin et al. 2019 (arXiv 1810.04805). Every linear layer sees
`(piece, width)` and never padding; only attention looks at texts as rows (attention/rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.attention import WEIGHTINGS
from litotes.attention.rows import Rows
from litotes.encoders.spec import EncoderSpec
from litotes.flow import Batch, Encoding
from litotes.layout import Layout
from litotes.registry import pick


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
    "silu": functional.silu,
}


class Embeddings(nn.Module):
    """What a piece is, where it stands and (in a pair) which text it belongs to."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        width = spec.embedding_width or spec.width
        self.first_position = spec.first_position
        self.piece = nn.Embedding(spec.n_vocabulary, width)
        self.position = nn.Embedding(spec.n_positions, width)
        self.segment = nn.Embedding(spec.n_segments, width) if spec.n_segments else None
        self.norm = nn.LayerNorm(width, eps=spec.norm_epsilon)
        self.dropout = nn.Dropout(spec.dropout)
        self.projection = nn.Linear(width, spec.width) if spec.has_projection else None

    def forward(self, batch: Batch) -> Tensor:
        hidden = self.piece(batch.pieces) + self.position(batch.layout.positions + self.first_position)  # (piece, embedding_width)
        if self.segment is not None:
            # RoBERTa has a single segment, whatever the tokenizer says of a pair.
            hidden = hidden + self.segment(batch.segments.clamp(max=self.segment.num_embeddings - 1))
        hidden = self.dropout(self.norm(hidden))
        return hidden if self.projection is None else self.projection(hidden)  # (piece, width)


class RelativeBias(nn.Module):
    """MPNet's bias by distance: exact for near pieces, logarithmic buckets up to 128 (Raffel et al. 2020, arXiv 1910.10683, §2.1)."""

    FARTHEST = 128

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.by_bucket = nn.Embedding(spec.n_relative_buckets, spec.n_attention_heads)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        ahead = key_positions[None, :] - query_positions[:, None]  # (query, key)
        return self.by_bucket(self._bucket(ahead)).permute(2, 0, 1).unsqueeze(0)  # (1, attention_head, query, key)

    def _bucket(self, ahead: Tensor) -> Tensor:
        half = self.by_bucket.num_embeddings // 2  # one half looks back, the other ahead
        exact = half // 2
        distance = ahead.abs()
        # clamp keeps log(0) out; distances under `exact` do not use the value.
        stretch = torch.log(distance.clamp(min=1) / exact) / math.log(self.FARTHEST / exact) * (half - exact)
        far = (exact + stretch.long()).clamp(max=half - 1)
        return torch.where(distance < exact, distance, far) + half * (ahead > 0)


class Attention(nn.Module):
    """Multi-head attention with one fused projection for query, key and value."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.n_heads, self.dropout = spec.n_attention_heads, spec.attention_dropout
        self.qkv = nn.Linear(spec.width, 3 * spec.width)
        self.output = nn.Linear(spec.width, spec.width)
        self.weighting = pick(WEIGHTINGS, spec.weighting, "weighting")(spec.n_attention_heads)

    def forward(self, hidden: Tensor, rows: Rows, bias: list[Tensor | None]) -> Tensor:
        packed = self.qkv(hidden).unflatten(-1, (3, self.n_heads, -1))  # (piece, 3, attention_head, head_width)
        query, key, value = packed.unbind(1)
        return self._attend(query, key, value, rows, rows, bias)

    def of_firsts(self, hidden: Tensor, rows: Rows, bias: list[Tensor | None]) -> Tensor:
        """Attention of each text's first piece alone, exact: keys and values of all pieces, queries of the first ones. (text, width)"""
        width = hidden.shape[-1]
        weight, offset = self.qkv.weight, self.qkv.bias
        query = functional.linear(hidden[rows.layout.starts], weight[:width], offset[:width])  # (text, width)
        both = functional.linear(hidden, weight[width:], offset[width:])  # (piece, 2 × width)
        key, value = both.unflatten(-1, (2, self.n_heads, -1)).unbind(1)
        first_bias = [None if block is None else block[:, :, :1] for block in bias]
        return self._attend(query.unflatten(-1, (self.n_heads, -1)), key, value, Rows(rows.layout.firsts, rows.apart), rows, first_bias)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, query_rows: Rows, rows: Rows, bias: list[Tensor | None]) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        blocks = zip(query_rows.split(query), rows.split(key), rows.split(value), rows.live, bias, strict=True)
        mixed = [self.weighting.attend(q, k, v, live=live, bias=b, dropout=dropout) for q, k, v, live, b in blocks]
        return self.output(query_rows.join(mixed))  # (query piece, width)


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to its input and normed."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.attention = Attention(spec)
        self.attention_norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.inner = nn.Linear(spec.width, spec.inner_width)
        self.outer = nn.Linear(spec.inner_width, spec.width)
        self.outer_norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.activation = pick(ACTIVATIONS, spec.activation, "activation")
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, hidden: Tensor, rows: Rows, bias: list[Tensor | None], *, firsts_only: bool = False) -> Tensor:
        if firsts_only:
            mixed = self.attention.of_firsts(hidden, rows, bias)
            hidden = hidden[rows.layout.starts]  # (text, width)
        else:
            mixed = self.attention(hidden, rows, bias)
        hidden = self.attention_norm(hidden + self.dropout(mixed))
        return self.outer_norm(hidden + self.dropout(self.outer(self.activation(self.inner(hidden)))))


class Encoder(nn.Module):
    """Embeddings → blocks. The weights come from pretrained.py; a fresh encoder is random."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.embeddings = Embeddings(spec)
        self.relative_bias = RelativeBias(spec) if spec.n_relative_buckets else None
        self.blocks = nn.ModuleList(Block(spec) for _ in range(spec.n_blocks))

    def forward(self, batch: Batch, *, firsts_only: bool = False) -> Encoding:
        """Hidden states of every piece, or of each text's first piece when nobody reads the others."""
        return self.walk(self.embeddings(batch), batch.layout, firsts_only=firsts_only)

    def walk(self, hidden: Tensor, layout: Layout, *, start: int = 0, stop: int | None = None, firsts_only: bool = False) -> Encoding:
        """Layers `start` to `stop` over `hidden` (piece, width).

        firsts_only: the last layer computes only each text's first piece. This is exact, for nothing after the last layer
        looks at the others, and saves most of a layer.
        """
        layers = self.spec.walk[start:stop]
        rows = Rows.of(layout)
        bias = self._bias(rows)
        for place, block in enumerate(layers):
            last = firsts_only and place == len(layers) - 1
            hidden = self.blocks[block](hidden, rows, bias, firsts_only=last)
        return Encoding(hidden, layout.firsts if firsts_only and layers else layout)

    def _bias(self, rows: Rows) -> list[Tensor | None]:
        if self.relative_bias is None:
            return [None] * len(rows.live)
        return [self.relative_bias(positions, positions) for positions in rows.positions]
