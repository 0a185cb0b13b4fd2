"""Disentangled attention: what a piece is and how far away it stands are compared apart.

He et al. 2021 (arXiv 2006.03654, §3.1) and, for DeBERTa-v3, He et al. 2023 (arXiv 2111.09543):

    affinity[q, k] = (query_q · key_k  +  query_q · K_δ  +  key_k · Q_δ) / √(3 d)
                      content to content   c2p               p2c

with δ the bucket of the distance from k to q, and K, Q the projections of one table of embeddings
of distances, either by the layer's own key and query projections or by two more. Where a term is
missing, so is its share of the 3. The paper gives p2c the distance from q to k; the published
models were trained with δ in both, and so it is here.

Buckets: distances up to m/2 have one each, farther ones share buckets that widen logarithmically
(DeBERTa-v2), m to either side:

    δ(n) = n                                                       for |n| ≤ m/2
    δ(n) = sign n (m/2 + ⌈(m/2 − 1) log(2|n|/m) / log(2(N−1)/m)⌉)  beyond, N the farthest distance

A text of n pieces reaches 2n − 1 distances at most, so each term costs one product with as many
embeddings, and one gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.encoder.spec import EncoderSpec


@dataclass(frozen=True)
class PairDistances:
    """The distances between the pieces of one block of rows.

    reached: the embeddings that these distances can have, of all in `Distances`.
    places: which of those each pair has. (text, query, key)
    """

    reached: slice
    places: Tensor


@dataclass(frozen=True)
class Distances:
    """Embeddings of distances, (distance, width), and which pair of pieces has which, for each
    block of rows.
    """

    embeddings: Tensor
    pairs: Sequence[PairDistances]

    def of_firsts(self) -> Distances:
        """The same for queries of each text's first piece alone."""
        pairs = [replace(block, places=block.places[:, :1]) for block in self.pairs]
        return replace(self, pairs=pairs)


class DistanceEmbeddings(nn.Module):
    """The table of embeddings of distances, which all layers share."""

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

    def forward(self, places: Sequence[Tensor], lengths: Sequence[int]) -> Distances:
        """places: where the pieces of each block's rows stood, (text, piece). lengths: of the
        longest text of each block, before any piece left.
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
            pairs.append(PairDistances(of_block, in_table - reached.start))
        return Distances(embeddings, pairs)

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

    def forward(self, distances: Distances, qkv: nn.Linear) -> list[DistanceTerms]:
        """What each block of rows compares its pieces with. qkv: the layer's fused projection."""
        embeddings = functional.dropout(distances.embeddings, self.dropout, self.training)
        keys = queries = None
        if "c2p" in self.terms:
            keys = self._project(embeddings, self.key, _part(qkv, 1), self.head_width**-0.5)
        if "p2c" in self.terms:
            scale = self.share * self.head_width**-0.5
            queries = self._project(embeddings, self.query, _part(qkv, 0), scale)
        return [DistanceTerms(keys, queries, pairs) for pairs in distances.pairs]

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
    """keys, queries: of all distances, (attention_head, distance, head_width), scaled; None where
    c2p or p2c is missing.
    """

    keys: Tensor | None
    queries: Tensor | None
    pairs: PairDistances

    def bias(self, query: Tensor, key: Tensor, heads: Tensor | None) -> Tensor:
        """c2p + p2c for queries and keys as rows, (text, attention_head, piece, head_width).

        heads: which attention heads these are, (text, attention_head); None: all.
        (text, attention_head, query, key)
        """
        places, terms = self.pairs.places, []
        if self.keys is not None:
            terms.append(_compare(query, self._reached(self.keys, heads), places))
        if self.queries is not None:
            by_key = _compare(key, self._reached(self.queries, heads), places.transpose(1, 2))
            terms.append(by_key.transpose(-1, -2))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def _reached(self, projected: Tensor, heads: Tensor | None) -> Tensor:
        """(text or 1, attention_head, distance, head_width)"""
        some = projected[:, self.pairs.reached]
        return some[None] if heads is None else some[heads]


def _compare(rows: Tensor, projected: Tensor, places: Tensor) -> Tensor:
    """Each piece with the distance it has to each of the others.

    places: (text, piece, other piece) → (text, attention_head, piece, other piece)
    """
    products = rows @ projected.transpose(-1, -2)  # (text, attention_head, piece, distance)
    return products.gather(-1, places[:, None].expand(-1, products.shape[1], -1, -1))
