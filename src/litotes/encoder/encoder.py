"""An encoder's parts and their weights. What is computed from them stands in walk.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.registry import build, unknown_name
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import ACTIVATIONS, TORCH, Encoding
from litotes.encoder.walk import embed, walk, walk_layers


class Encoder(nn.Module):
    """Embeddings → blocks. The weights come from pretrained.py; a fresh encoder is random.

    recomputes: what layers compute is computed again for the gradient instead of kept.
    """

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.recomputes = False
        self.embeddings = Embeddings(spec)
        self.relative_bias = RelativeBias(spec) if spec.n_relative_buckets else None
        self.distances = DistanceEmbeddings(spec) if spec.position_terms else None
        self.blocks = nn.ModuleList(Block(spec, number) for number in range(spec.n_blocks))
        self.final_norm = make_norm(spec) if spec.norm_first else None
        sizes = (len(spec.walk), spec.n_attention_heads, spec.width)
        self.pruning = build(
            PRUNINGS, spec.pruning, "pruning", *sizes, options=spec.pruning_options
        )
        if spec.heads_kept and self.pruning.plan().heads[-1] < 1:
            raise UserError(
                "Attention heads were removed from this encoder for good: a pruning cannot remove"
                " more of them text by text."
            )

    def forward(self, batch: Batch, **options: Any) -> Encoding:
        """Encodes a batch with torch's walk. options: of `walk_layers`."""
        encoding: Encoding = walk(TORCH, self, batch, **options)
        return encoding

    def walk(self, hidden: Tensor, layout: Layout, **options: Any) -> Encoding:
        """The same from hidden states on. (piece, width)"""
        encoding: Encoding = walk_layers(TORCH, self, hidden, layout, **options)
        return encoding

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
        return [self.block(number).attention for number in range(self.spec.n_blocks)]

    def block(self, number: int) -> Block:
        block = self.blocks[number]
        assert isinstance(block, Block)
        return block

    def block_of(self, layer: int) -> Block:
        """The block that a layer uses; several may use one."""
        return self.block(self.spec.walk[layer])


@contextmanager
def recompute(encoder: Encoder, wanted: bool) -> Iterator[None]:
    """Recomputes what layers compute, where gradients are wanted, instead of keeping it."""
    encoder.recomputes = wanted and torch.is_grad_enabled()
    try:
        yield
    finally:
        encoder.recomputes = False


def make_norm(spec: EncoderSpec) -> nn.LayerNorm:
    """A norm of hidden states."""
    return nn.LayerNorm(spec.width, eps=spec.norm_epsilon, bias=spec.norm_bias)


class Embeddings(nn.Module):
    """Tables of what a piece is and, where a family has them, of where it stands and (in a pair)
    which text it belongs to.
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
        """h₀ by torch. (piece, width)"""
        hidden: Tensor = embed(TORCH, self, batch)
        return hidden


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to its input and normed after or before.

    attention_norm: None where norms come first and the embeddings have been normed already.
    """

    def __init__(self, spec: EncoderSpec, number: int) -> None:
        super().__init__()
        if spec.activation not in ACTIVATIONS:
            raise UserError(unknown_name(spec.activation, ACTIVATIONS, "activation"))
        self.activation = spec.activation
        self.norm_first, self.is_gated = spec.norm_first, spec.is_gated
        self.attention = Attention(spec, spec.heads_of(number))
        is_normed = spec.norm_first and number == 0
        self.attention_norm = None if is_normed else make_norm(spec)
        n_inner = (1 + spec.is_gated) * spec.inner_width
        self.inner = nn.Linear(spec.width, n_inner, bias=spec.feed_forward_bias)
        self.outer = nn.Linear(spec.inner_width, spec.width, bias=spec.feed_forward_bias)
        self.outer_norm = make_norm(spec)
        self.dropout = nn.Dropout(spec.dropout)


class Attention(nn.Module):
    """Multi-head attention, with one fused projection for query, key and value.

    heads: the attention heads this block has, by their numbers before any were removed for good.
    """

    def __init__(self, spec: EncoderSpec, heads: Sequence[int]) -> None:
        super().__init__()
        self.heads, self.n_heads, self.dropout = list(heads), len(heads), spec.attention_dropout
        self.has_all_heads = self.n_heads == spec.n_attention_heads
        self.inner = self.n_heads * spec.head_width
        self.qkv = nn.Linear(spec.width, 3 * self.inner, bias=spec.attention_bias)
        self.output = nn.Linear(self.inner, spec.width, bias=spec.attention_bias)
        self.disentangled = Disentangled(spec, self.n_heads) if spec.position_terms else None
        self.weighting = build(
            WEIGHTINGS, spec.weighting, "weighting", self.n_heads, options=spec.weighting_options
        )

    @property
    def scale(self) -> float:
        """The factor on the products of queries and keys."""
        share = 1.0 if self.disentangled is None else self.disentangled.share
        return float(share * (self.inner // self.n_heads) ** -0.5)

    def project(self, hidden: Tensor) -> Tensor:
        """(piece, width) → (piece, 3, attention_head, head_width)"""
        return self.qkv(hidden).unflatten(-1, (3, self.n_heads, -1))

    def project_part(self, hidden: Tensor, outputs: slice) -> Tensor:
        """Projects to the query or to key and value. → (piece, part, attention_head, head_width)"""
        bias = None if self.qkv.bias is None else self.qkv.bias[outputs]
        some = functional.linear(hidden, self.qkv.weight[outputs], bias)
        return some.unflatten(-1, (-1, self.n_heads, self.inner // self.n_heads))


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


class DistanceEmbeddings(nn.Module):
    """Disentangled attention: what a piece is and how far away it stands are compared apart.

    He et al. 2021 (arXiv 2006.03654, §3.1) and, for DeBERTa-v3, He et al. 2023 (arXiv 2111.09543):

        affinity[q, k] = (query_q · key_k  +  query_q · K_δ  +  key_k · Q_δ) / √(3 d)
                          content to content   c2p               p2c

    with δ the bucket of the distance from k to q, and K, Q the projections of one table of
    embeddings of distances, which all layers share, either by the layer's own key and query
    projections or by two more. Where a term is missing, so is its share of the 3. The paper gives
    p2c the distance from q to k; the published models were trained with δ in both, and so it is
    here.

    Buckets: distances up to m/2 have one each, farther ones share buckets that widen
    logarithmically (DeBERTa-v2), m to either side:

        δ(n) = n                                                       for |n| ≤ m/2
        δ(n) = sign n (m/2 + ⌈(m/2 − 1) log(2|n|/m) / log(2(N−1)/m)⌉)  beyond, N the farthest

    A text of n pieces reaches 2n − 1 distances at most, so each term costs one product with as many
    embeddings, and one gather.
    """

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.span = spec.n_distances
        self.table = nn.Embedding(2 * self.span, spec.width)
        self.norm = None
        if spec.distance_norm == "layer_norm":
            self.norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        buckets = _bucket_by_distance(spec)
        self.reach = buckets.tolist()
        self.register_buffer("buckets", buckets, persistent=False)

    def forward(
        self, places: Sequence[Tensor], lengths: Sequence[int]
    ) -> tuple[Tensor, list[tuple[slice, Tensor]]]:
        """Embeddings of the distances that there can be, (distance, width); and for each block of
        rows which of them its pieces can ask for, and which each pair has, (text, query, key).

        places: where the pieces of each block's rows stood, (text, piece). lengths: of the longest
        text of each block, before any piece left.
        """
        all_reached = self.reached(max(lengths))
        numbers = torch.arange(all_reached.start, all_reached.stop, device=places[0].device)
        embeddings = self.table(numbers)  # (distance, width)
        if self.norm is not None:
            embeddings = self.norm(embeddings)
        pairs = []
        for block, length in zip(places, lengths, strict=True):
            reached, offset = self.reached(length), all_reached.start
            in_table = (self.span + self.bucket(block)).clamp(max=2 * self.span - 1)
            of_block = slice(reached.start - offset, reached.stop - offset)
            pairs.append((of_block, in_table - reached.start))
        return embeddings, pairs

    def reached(self, length: int) -> slice:
        """The part of the table that the pieces of a text of this length can ask for.

        To one side the farthest bucket has no embedding: it takes its neighbour's.
        """
        reach = self.reach[length - 1]
        return slice(self.span - reach, min(self.span + reach + 1, 2 * self.span))

    def bucket(self, places: Tensor) -> Tensor:
        """δ of every pair of a row's pieces. (text, piece) → (text, query, key)"""
        behind = places[:, :, None] - places[:, None, :]
        buckets = self.buckets
        assert isinstance(buckets, Tensor)
        return buckets[behind.abs()] * behind.sign()


def _bucket_by_distance(spec: EncoderSpec) -> Tensor:
    """The bucket of each distance from 0 on, whichever way it goes. (distance,)"""
    distances = torch.arange(spec.max_pieces)
    if not spec.n_distance_buckets:
        return distances.clamp(max=spec.farthest)
    half = spec.n_distance_buckets // 2
    widest = torch.log(torch.tensor((spec.farthest - 1) / half))
    logarithms = torch.log(distances.clamp(min=1) / half) / widest
    far = (torch.ceil(logarithms * (half - 1)) + half).long()
    return torch.where(distances <= half, distances, far).clamp(max=spec.n_distance_buckets)


class Disentangled(nn.Module):
    """The projections of distances in one layer.

    key, query: its own; None where the layer's projections of pieces are used, or where the term is
    missing.
    share: what the queries are multiplied by, since affinities are divided by √d alone later.
    """

    def __init__(self, spec: EncoderSpec, n_heads: int) -> None:
        super().__init__()
        inner = n_heads * spec.head_width
        self.n_heads, self.head_width, self.terms = n_heads, spec.head_width, spec.position_terms
        self.share = (1 + len(self.terms)) ** -0.5
        self.key = self.query = None
        if not spec.shares_projections:
            self.key = nn.Linear(spec.width, inner) if "c2p" in self.terms else None
            self.query = nn.Linear(spec.width, inner) if "p2c" in self.terms else None
        self.dropout = spec.dropout

    def forward(
        self, embeddings: Tensor, pairs: Sequence[tuple[slice, Tensor]], qkv: nn.Linear
    ) -> list[DistanceTerms]:
        """Makes the distance terms of each block of rows. qkv: the layer's fused projection."""
        embeddings = functional.dropout(embeddings, self.dropout, self.training)
        keys = queries = None
        if "c2p" in self.terms:
            keys = self._project(embeddings, self.key, _part(qkv, 1), self.head_width**-0.5)
        if "p2c" in self.terms:
            scale = self.share * self.head_width**-0.5
            queries = self._project(embeddings, self.query, _part(qkv, 0), scale)
        return [DistanceTerms(keys, queries, *pair) for pair in pairs]

    def _project(
        self,
        embeddings: Tensor,
        own: nn.Linear | None,
        shared: tuple[Tensor, Tensor | None],
        scale: float,
    ) -> Tensor:
        """(distance, width) → (attention_head, distance, head_width)"""
        rows = functional.linear(embeddings, *shared) if own is None else own(embeddings)
        return rows.unflatten(-1, (self.n_heads, -1)).transpose(0, 1) * scale


def _part(qkv: nn.Linear, part: int) -> tuple[Tensor, Tensor | None]:
    """The weight and the offset of one of the three fused projections."""
    offset = None if qkv.bias is None else qkv.bias.chunk(3)[part]
    return qkv.weight.chunk(3)[part], offset


@dataclass(frozen=True)
class DistanceTerms:
    """The distances that one block of rows compares its pieces with.

    keys, queries: of all distances, (attention_head, distance, head_width), scaled; None where c2p
    or p2c is missing. reached, places: of `DistanceEmbeddings`.
    """

    keys: Tensor | None
    queries: Tensor | None
    reached: slice
    places: Tensor

    def bias(self, query: Tensor, key: Tensor, heads: Tensor | None) -> Tensor:
        """c2p + p2c for queries and keys as rows, (text, attention_head, piece, head_width).

        heads: which attention heads these are, (text, attention_head); None: all.
        (text, attention_head, query, key)
        """
        places, terms = self.places, []
        if self.keys is not None:
            terms.append(_compare(query, self._reached(self.keys, heads), places))
        if self.queries is not None:
            by_key = _compare(key, self._reached(self.queries, heads), places.transpose(1, 2))
            terms.append(by_key.transpose(-1, -2))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def _reached(self, projected: Tensor, heads: Tensor | None) -> Tensor:
        """(text or 1, attention_head, distance, head_width)"""
        some = projected[:, self.reached]
        return some[None] if heads is None else some[heads]


def _compare(rows: Tensor, projected: Tensor, places: Tensor) -> Tensor:
    """Compares each piece with the distance it has to each of the others.

    places: (text, piece, other piece) → (text, attention_head, piece, other piece)
    """
    products = rows @ projected.transpose(-1, -2)  # (text, attention_head, piece, distance)
    return products.gather(-1, places[:, None].expand(-1, products.shape[1], -1, -1))
