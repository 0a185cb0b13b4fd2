"""The decoder: each piece reads the target up to itself, then the source, then itself.

    a_l     = norm(h_l + Attention(h_l, h_l up to itself))
    b_l     = norm(a_l + Attention(a_l, source))
    h_{l+1} = norm(b_l + W₂ act(W₁ b_l))

with norms after (Vaswani et al. 2017, arXiv 1706.03762, §3.1) or, steadier, before each part, and
one at the end (Xiong et al. 2020, arXiv 2002.04745). Every attention may be sparse with an α of its
own for each attention head (Correia, Niculae & Martins 2019, arXiv 1909.00015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from litotes.core.registry import pick
from litotes.encoder.encoder import ACTIVATIONS
from litotes.encoder.layout import Layout
from litotes.encoder.walk import Encoding
from litotes.training.translation.attention import (
    ACROSS,
    SELF,
    AttentionTrace,
    DecoderAttention,
    DecoderObserver,
    Reading,
)
from litotes.training.translation.cache import Cache, LayerCache
from litotes.training.translation.positions import sinusoids
from litotes.training.translation.spec import DecoderSpec


class DecoderEmbeddings(nn.Module):
    """norm(piece + position). The table of pieces may be the encoder's."""

    def __init__(self, spec: DecoderSpec, piece: nn.Embedding | None) -> None:
        super().__init__()
        self.piece = piece or nn.Embedding(spec.n_vocabulary, spec.width)
        self.position = nn.Embedding(spec.n_positions, spec.width)
        if spec.positions == "sinusoidal":
            fix_positions(self.position)
        self.norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, pieces: Tensor, positions: Tensor) -> Tensor:
        """(piece, width), from two of (piece,)."""
        return self.dropout(self.norm(self.piece(pieces) + self.position(positions)))


def fix_positions(table: nn.Embedding) -> None:
    """Makes a table of positions one of waves, which is not learned."""
    with torch.no_grad():
        table.weight.copy_(sinusoids(*table.weight.shape))
    table.weight.requires_grad_(False)


class DecoderBlock(nn.Module):
    """One layer: attention to the target, attention to the source, feed-forward."""

    def __init__(self, spec: DecoderSpec) -> None:
        super().__init__()
        self.norm_first = spec.norm_first
        self.self_attention = DecoderAttention(spec, spec.width)
        self.across = DecoderAttention(spec, spec.source_width)
        self.inner = nn.Linear(spec.width, spec.inner_width)
        self.outer = nn.Linear(spec.inner_width, spec.width)
        self.self_norm, self.across_norm, self.outer_norm = (_norm(spec) for _ in range(3))
        self.activation = pick(ACTIVATIONS, spec.activation, "activation")
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self,
        hidden: Tensor,
        attend: Callable[[Tensor], Tensor],
        attend_across: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """The layer around two attentions, over all pieces or over those of one step.

        (piece, width)
        """
        hidden = self._around(hidden, self.self_norm, attend)
        hidden = self._around(hidden, self.across_norm, attend_across)
        return self._around(hidden, self.outer_norm, self._feed_forward)

    def _around(self, hidden: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return hidden + self.dropout(part(norm(hidden)))
        return norm(hidden + self.dropout(part(hidden)))

    def _feed_forward(self, hidden: Tensor) -> Tensor:
        return self.outer(self.activation(self.inner(hidden)))


class Decoder(nn.Module):
    """Embeddings → blocks. piece: the encoder's table of pieces, where it is shared."""

    def __init__(self, spec: DecoderSpec, piece: nn.Embedding | None = None) -> None:
        super().__init__()
        self.spec = spec
        self.embeddings = DecoderEmbeddings(spec, piece)
        self.blocks = nn.ModuleList(DecoderBlock(spec) for _ in range(spec.n_layers))
        self.final_norm = _norm(spec) if spec.norm_first else nn.Identity()

    def forward(
        self,
        pieces: Tensor,
        layout: Layout,
        source: Encoding,
        *,
        observer: DecoderObserver | None = None,
    ) -> Tensor:
        """Hidden states (piece, width) of packed targets (piece,), each reading its own source."""
        own = Reading.of(layout, layout, causal=True)
        across = Reading.of(layout, source.layout)
        hidden = self.embeddings(pieces, layout.positions)
        for number in range(self.spec.n_layers):
            block = self.block(number)
            hidden = block(
                hidden,
                _attention(SELF, number, block.self_attention, None, own, observer),
                _attention(ACROSS, number, block.across, source.hidden, across, observer),
            )
        return self.final_norm(hidden)

    def begin(self, source: Encoding, n_rows: int) -> Cache:
        """A cache before the first piece. n_rows: hypotheses of each text."""
        reading = Reading.of(source.layout, source.layout)
        n_texts, heads = source.layout.n_texts, self.spec.n_attention_heads
        layers = []
        for number in range(self.spec.n_layers):
            key, value = self.block(number).across.split_keys(source.hidden, reading.keys)
            empty = key.new_empty(n_texts * n_rows, heads, 0, self.spec.head_width)
            layers.append(LayerCache(key, value, empty, empty))
        return Cache(tuple(layers), reading.live, 0)

    def step(self, pieces: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """The hidden state of one more piece of every row, (row, width), and the cache with it."""
        positions = torch.full_like(pieces, cache.n_pieces)
        hidden = self.embeddings(pieces, positions)
        layers: list[LayerCache] = []
        for number in range(self.spec.n_layers):
            block, before = self.block(number), cache.layers[number]

            def attend(
                read: Tensor, block: DecoderBlock = block, before: LayerCache = before
            ) -> Tensor:
                layers.append(before.add(*block.self_attention.project_keys(read)))
                return _attend_row(block.self_attention, read, layers[-1])

            def attend_across(
                read: Tensor, block: DecoderBlock = block, before: LayerCache = before
            ) -> Tensor:
                return _attend_text(block.across, read, before, cache.live)

            hidden = block(hidden, attend, attend_across)
        after = replace(cache, layers=tuple(layers), n_pieces=cache.n_pieces + 1)
        return self.final_norm(hidden), after

    def set_progress(self, progress: float) -> None:
        """Tells the weightings how much of the training is done, 0 to 1."""
        for attention in self.attentions(SELF) + self.attentions(ACROSS):
            attention.weighting.progress = progress

    def attentions(self, kind: str) -> list[DecoderAttention]:
        """Those of one kind, layer by layer."""
        blocks = [self.block(number) for number in range(self.spec.n_layers)]
        return [block.self_attention if kind == SELF else block.across for block in blocks]

    def block(self, number: int) -> DecoderBlock:
        block = self.blocks[number]
        assert isinstance(block, DecoderBlock)
        return block


def _attention(
    kind: str,
    layer: int,
    attention: DecoderAttention,
    source: Tensor | None,
    reading: Reading,
    observer: DecoderObserver | None,
) -> Callable[[Tensor], Tensor]:
    """The attention of a layer over whole texts. source: None for the target itself."""

    def attend(hidden: Tensor) -> Tensor:
        read = hidden if source is None else source
        if observer is None:
            return attention(hidden, read, reading)
        gathered, weights, value = attention.observe(hidden, read, reading)
        observer(AttentionTrace(kind, layer, weights.detach(), value.detach()))
        return gathered

    return attend


def _attend_row(attention: DecoderAttention, hidden: Tensor, cache: LayerCache) -> Tensor:
    """The newest piece of every row reads all of its row: nothing after it is there yet."""
    query = attention.project_query(hidden).unsqueeze(2)  # (row, attention_head, 1, head_width)
    mixed, _ = attention.weigh(query, cache.key, cache.value, None)
    return attention.output(mixed.flatten(1))


def _attend_text(
    attention: DecoderAttention, hidden: Tensor, cache: LayerCache, live: Tensor
) -> Tensor:
    """The newest pieces of a text's hypotheses are queries to the same source."""
    n_texts = len(cache.source_key)
    query = attention.project_query(hidden).unflatten(0, (n_texts, -1)).transpose(1, 2)
    # (text, attention_head, hypothesis, head_width)
    mixed, _ = attention.weigh(query, cache.source_key, cache.source_value, live)
    return attention.output(mixed.transpose(1, 2).flatten(0, 1).flatten(1))


def _norm(spec: DecoderSpec) -> nn.LayerNorm:
    return nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
