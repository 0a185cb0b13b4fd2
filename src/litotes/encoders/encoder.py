"""The encoder: embeddings, then blocks of attention and feed-forward, over texts laid end to end.

    h₀      = norm(piece + position + segment)
    a_l     = norm(h_l + Attention(h_l))
    h_{l+1} = norm(a_l + W₂ act(W₁ a_l))

Post-norm Transformer encoder: Vaswani et al. 2017 (arXiv 1706.03762), Devlin et al. 2019 (arXiv
1810.04805). Every linear layer sees `(piece, width)` and never padding; only attention looks at
texts as rows (attention/rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.attention import PRUNINGS, WEIGHTINGS
from litotes.attention.observer import LayerTrace, Observer
from litotes.attention.pruning import AttentionOutput
from litotes.attention.rows import Rows
from litotes.attention.survivors import Survivors
from litotes.core.errors import UserError
from litotes.core.registry import build, pick
from litotes.encoders.encoding import Encoding
from litotes.encoders.spec import EncoderSpec
from litotes.text.batch import Batch
from litotes.text.layout import Layout

Blocks = list[Tensor | None]
"""Something each row block has one of, or has not."""


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
        # (piece, embedding_width)
        hidden = self.piece(batch.pieces) + self.position(
            batch.layout.positions + self.first_position
        )
        if self.segment is not None:
            # RoBERTa has a single segment, whatever the tokenizer says of a pair.
            hidden = hidden + self.segment(
                batch.segments.clamp(max=self.segment.num_embeddings - 1)
            )
        hidden = self.dropout(self.norm(hidden))
        return hidden if self.projection is None else self.projection(hidden)  # (piece, width)


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

    def _bucket(self, ahead: Tensor) -> Tensor:
        half = self.by_bucket.num_embeddings // 2  # one half looks back, the other ahead
        exact = half // 2
        distance = ahead.abs()
        # clamp keeps log(0) out; distances under `exact` do not use the value.
        stretch = (
            torch.log(distance.clamp(min=1) / exact)
            / math.log(self.FARTHEST / exact)
            * (half - exact)
        )
        far = (exact + stretch.long()).clamp(max=half - 1)
        return torch.where(distance < exact, distance, far) + half * (ahead > 0)


class Attention(nn.Module):
    """Multi-head attention with one fused projection for query, key and value, up to the output
    projection.

    heads: the attention heads this block has, by the numbers they had before some were taken away
    for good.
    """

    def __init__(self, spec: EncoderSpec, heads: Sequence[int]) -> None:
        super().__init__()
        self.heads, self.n_heads, self.dropout = list(heads), len(heads), spec.attention_dropout
        self.has_all_heads = self.n_heads == spec.n_attention_heads
        self.inner = self.n_heads * spec.head_width
        self.qkv = nn.Linear(spec.width, 3 * self.inner)
        self.output = nn.Linear(self.inner, spec.width)
        self.weighting = build(
            WEIGHTINGS, spec.weighting, "weighting", self.n_heads, options=spec.weighting_options
        )

    def forward(
        self,
        hidden: Tensor,
        rows: Rows,
        bias: Blocks,
        heads: Tensor | None,
        *,
        observed: bool,
        shown: bool = False,
    ) -> tuple[Tensor, AttentionOutput | None]:
        """What each piece gathers, (piece, attention_head × head_width), and, when observed, what
        the attention showed.

        heads: the attention heads each text still uses, (text, attention_head); None: all. shown:
        keep the weights themselves as well.
        """
        # (piece, 3, attention_head, head_width)
        packed = self.qkv(hidden).unflatten(-1, (3, self.n_heads, -1))
        query, key, value = of_heads(packed, heads, rows.layout).unbind(1)
        mixed, received, weights = self._attend(
            query, key, value, rows, rows, bias, heads, observed=observed, shown=shown
        )
        if received is None:
            return mixed.flatten(1), None
        return mixed.flatten(1), AttentionOutput(received.squeeze(-1), packed[:, 2], mixed, weights)

    def of_firsts(self, hidden: Tensor, rows: Rows, bias: Blocks, heads: Tensor | None) -> Tensor:
        """The same for each text's first piece alone, exact: keys and values of all pieces, queries
        of the first ones. (text, inner)
        """
        weight, offset = self.qkv.weight, self.qkv.bias
        first_rows = Rows(rows.layout.firsts, rows.apart)
        # (text, inner)
        asking = functional.linear(
            hidden[rows.layout.starts], weight[: self.inner], offset[: self.inner]
        )
        # (piece, 2 × inner)
        asked = functional.linear(hidden, weight[self.inner :], offset[self.inner :])
        query = of_heads(
            asking.unflatten(-1, (1, self.n_heads, -1)), heads, first_rows.layout
        ).squeeze(1)
        key, value = of_heads(
            asked.unflatten(-1, (2, self.n_heads, -1)), heads, rows.layout
        ).unbind(1)
        first_bias = [None if block is None else block[:, :, :1] for block in bias]
        mixed, _, _ = self._attend(
            query, key, value, first_rows, rows, first_bias, heads, observed=False, shown=False
        )
        return mixed.flatten(1)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        query_rows: Rows,
        rows: Rows,
        bias: Blocks,
        heads: Tensor | None,
        *,
        observed: bool,
        shown: bool,
    ) -> tuple[Tensor, Tensor | None, tuple[Tensor, ...]]:
        """Packed queries, keys and values of the attention heads still used → what all heads
        gathered, those gone nothing, (query piece, attention_head, head_width), the weight each key
        received (piece, attention_head, 1), and each block's weights.
        """
        dropout = self.dropout if self.training else 0.0
        blocks = zip(
            query_rows.split(query),
            rows.split(key),
            rows.split(value),
            rows.live,
            bias,
            rows.by_text(heads),
            strict=True,
        )
        all_mixed, all_received, all_weights = [], [], []
        for q, k, v, live, b, used in blocks:
            b = b if b is None or self.has_all_heads else b[:, self.heads]
            b = b if b is None or used is None else _bias_of_heads(b, used)
            options = {"live": live, "bias": b, "heads": used, "dropout": dropout}
            if not observed:
                all_mixed.append(self.weighting.attend(q, k, v, **options))
                continue
            mixed, weights = self.weighting.attend_with_weights(q, k, v, **options)
            all_mixed.append(mixed)
            # padding asks too
            weights = (
                weights.detach()
                if live is None
                else weights.detach().masked_fill(~live.transpose(-1, -2), 0.0)
            )
            # (text, attention_head, key, 1)
            all_received.append(weights.sum(-2, dtype=torch.float32).unsqueeze(-1))
            if shown:
                all_weights.append(weights)
        received = (
            back_in_place(rows.join(all_received), heads, rows.layout, self.n_heads)
            if observed
            else None
        )
        return (
            back_in_place(query_rows.join(all_mixed), heads, query_rows.layout, self.n_heads),
            received,
            tuple(all_weights),
        )


def _of_firsts(hidden: Tensor, layout: Layout) -> Encoding:
    """The encoding of each text's first piece alone. hidden: (text, width)"""
    return Encoding(hidden, layout.firsts, torch.zeros_like(layout.firsts.texts))


def of_heads(packed: Tensor, heads: Tensor | None, layout: Layout) -> Tensor:
    """What belongs to the attention heads each text still uses.

    (piece, part, attention_head, head_width), by heads (text, shown)

    For all texts in one go, the cheapest way we found: on a CPU, where one head of twelve is gone
    and texts are short, even this copy costs more than the attention it saves.
    """
    if heads is None:
        return packed
    n_pieces, n_parts, n_heads, _ = packed.shape
    part_starts = torch.arange(0, n_pieces * n_parts * n_heads, n_heads, device=packed.device).view(
        n_pieces, n_parts, 1
    )
    places = part_starts + heads[layout.texts].unsqueeze(1)  # (piece, part, shown)
    return packed.flatten(0, 2).index_select(0, places.flatten()).unflatten(0, places.shape)


def back_in_place(packed: Tensor, heads: Tensor | None, layout: Layout, n_heads: int) -> Tensor:
    """The inverse of `of_heads` for one part, (piece, shown, …) → (piece, attention_head, …);
    attention heads that are gone give zeros.
    """
    if heads is None:
        return packed
    starts = torch.arange(0, len(packed) * n_heads, n_heads, device=packed.device)
    places = starts[:, None] + heads[layout.texts]  # (piece, shown)
    whole = packed.new_zeros(len(packed) * n_heads, packed.shape[-1])
    return whole.index_copy_(0, places.flatten(), packed.flatten(0, 1)).unflatten(0, (-1, n_heads))


def _bias_of_heads(bias: Tensor, heads: Tensor) -> Tensor:
    """(text or 1, attention_head, query, key), by heads (text, shown)"""
    whole = bias.expand(len(heads), -1, -1, -1)
    return whole.gather(1, heads[:, :, None, None].expand(-1, -1, *whole.shape[2:]))


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to its input and normed.

    Between the two halves pieces may leave.
    """

    def __init__(self, spec: EncoderSpec, heads: Sequence[int]) -> None:
        super().__init__()
        self.attention = Attention(spec, heads)
        self.attention_norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.inner = nn.Linear(spec.width, spec.inner_width)
        self.outer = nn.Linear(spec.inner_width, spec.width)
        self.outer_norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.activation = pick(ACTIVATIONS, spec.activation, "activation")
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """From what each piece was and what its attention gathered to what it is next.

        (piece, width)
        """
        hidden = self.attention_norm(hidden + self.dropout(self.attention.output(mixed)))
        return self.outer_norm(
            hidden + self.dropout(self.outer(self.activation(self.inner(hidden))))
        )


class Encoder(nn.Module):
    """Embeddings → blocks. The weights come from pretrained.py; a fresh encoder is random."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.embeddings = Embeddings(spec)
        self.relative_bias = RelativeBias(spec) if spec.n_relative_buckets else None
        self.blocks = nn.ModuleList(
            Block(spec, spec.heads_of(block)) for block in range(spec.n_blocks)
        )
        sizes = (len(spec.walk), spec.n_attention_heads, spec.width)
        self.pruning = build(
            PRUNINGS, spec.pruning, "pruning", *sizes, options=spec.pruning_options
        )
        if spec.heads_kept and self.pruning.plan().heads[-1] < 1:
            raise UserError(
                "Attention heads were taken away from this encoder for good: a pruning cannot take"
                " others away by text."
            )

    def forward(
        self, batch: Batch, *, firsts_only: bool = False, observer: Observer | None = None
    ) -> Encoding:
        """Hidden states of every piece that goes on, or of each text's first piece when nobody
        reads the others.
        """
        return self.walk(
            self.embeddings(batch), batch.layout, firsts_only=firsts_only, observer=observer
        )

    def walk(
        self,
        hidden: Tensor,
        layout: Layout,
        *,
        start: int = 0,
        stop: int | None = None,
        firsts_only: bool = False,
        observer: Observer | None = None,
    ) -> Encoding:
        """Layers `start` to `stop` over `hidden` (piece, width).

        firsts_only: the last layer computes only each text's first piece. This is exact, for
        nothing after the last layer looks at the others, and saves most of a layer. observer: is shown
        the attention of every layer, of all pieces also in the last one.
        """
        layers = self.spec.walk[start:stop]
        plan = self.pruning.plan().for_firsts_only() if firsts_only else self.pruning.plan()
        there = Survivors.all_of(layout, self.spec.n_attention_heads)
        rows, bias = self._rows(there)
        for layer, number in enumerate(layers, start):
            block = self._block(number)
            reads_firsts = firsts_only and layer == start + len(layers) - 1
            if reads_firsts and observer is None:
                mixed = block.attention.of_firsts(hidden, rows, bias, there.heads)
                return _of_firsts(block(hidden[rows.layout.starts], mixed), layout)
            prunes = plan.needs_importance(layer, self.spec.n_attention_heads)
            mixed, attention = block.attention(
                hidden,
                rows,
                bias,
                there.heads,
                observed=prunes or observer is not None,
                shown=observer is not None,
            )
            before, came_in = there, hidden
            if attention is not None and prunes:
                hidden, mixed, there = self.pruning(layer, plan, hidden, mixed, before, attention)
                if there.layout is not before.layout:
                    rows, bias = self._rows(there)
            if attention is not None and observer is not None:
                observer(
                    LayerTrace(layer, came_in, block.attention.heads, attention, before, there)
                )
            if reads_firsts:
                return _of_firsts(block(hidden, mixed)[rows.layout.starts], layout)
            hidden = block(hidden, mixed)
        if self.pruning.restore and there.removed:
            return Encoding(there.restore(hidden), layout, layout.positions)
        return Encoding(hidden, there.layout, there.origin)

    def set_progress(self, progress: float) -> None:
        """Tells the weightings how much of the training is done, 0 to 1."""
        for attention in self.attentions:
            attention.weighting.progress = progress

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embeddings.piece.weight.device

    @property
    def attentions(self) -> list[Attention]:
        """The attention of every block."""
        return [self._block(number).attention for number in range(self.spec.n_blocks)]

    def _block(self, number: int) -> Block:
        block = self.blocks[number]
        assert isinstance(block, Block)
        return block

    def _rows(self, there: Survivors) -> tuple[Rows, Blocks]:
        """The pieces still there as rows for attention, and the bias that goes with them."""
        rows = Rows.of(there.layout)
        if self.relative_bias is None:
            return rows, [None] * len(rows.live)
        return rows, [
            self.relative_bias(places) for places in rows.places_in_text(there.origin.clamp(min=0))
        ]
