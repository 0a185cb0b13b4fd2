"""What an encoder has to compute for texts of given lengths: floating point operations, two for
each multiply-add.

For n pieces that come into a layer and m that go on from its attention, width w, h attention heads
of width d and inner width f:

    query, key, value   2 · n · w · 3hd          (firsts only: one query a text)
    attention           2 · 2 · n² · h'd         affinities, then mixing; h' = the attention heads
                                                 that the text still uses
    output projection   2 · m · hd · w
    feed-forward        2 · 2 · m · w · f        (gated: 2 · 3 · m · w · f)
    distances           2 · r · w · hd + 2 · n · r · h'd for each of DeBERTa's terms, where the text
                        reaches r distances; texts of a batch share the first half

Matrix products alone are counted, as everywhere in the literature: norms, activations and softmax
are left out, and so is what a pruning needs to choose (sums, sorting; a scorer's 2w a piece).
Padding is counted where there is any: give the padded lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from operator import mul
from typing import NamedTuple

from litotes.encoder.attention.pruning import Pruning
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Plan


@dataclass(frozen=True)
class LayerCost:
    """The operations of one layer for all texts; n_pieces: those that come into it."""

    n_pieces: int
    qkv: int
    attention: int
    output: int
    feed_forward: int
    distances: int = 0

    @property
    def total(self) -> int:
        return self.qkv + self.attention + self.output + self.feed_forward + self.distances


@dataclass(frozen=True)
class Cost:
    """The operations of an encoder for all texts. embeddings: their projection, where a family has
    one.
    """

    embeddings: int
    layers: tuple[LayerCost, ...]

    @property
    def total(self) -> int:
        return self.embeddings + sum(layer.total for layer in self.layers)


def flops(encoder: Encoder, lengths: Sequence[int], *, firsts_only: bool = False) -> Cost:
    """Counts what `encoder` computes for texts of these lengths in evaluation mode; known before
    anything is computed.

    firsts_only: the last layer goes on with each text's first piece alone.
    """
    spec, plan, fuse = encoder.spec, evaluation_plan(encoder.pruning), encoder.pruning.fuse
    embedding_width = spec.embedding_width or spec.width
    embeddings = 2 * sum(lengths) * embedding_width * spec.width if spec.has_projection else 0
    entering, n_distances = list(lengths), [0] * len(lengths)
    if encoder.distances is not None:  # how many distances each text compares its pieces with
        reached = map(encoder.distances.reached, lengths)
        n_distances = [part.stop - part.start for part in reached]
    layers = []
    for layer, block in enumerate(spec.walk):
        n_heads = n_used = len(spec.heads_of(block))
        if layer and not spec.heads_kept:
            n_used = plan.n_heads(layer - 1, spec.n_attention_heads)
        querying, leaving = entering, lengths_after(plan, layer, lengths, fuse=fuse)
        if firsts_only and layer == len(spec.walk) - 1:
            querying = leaving = [1] * len(lengths)
        pieces = Pieces(entering, querying, leaving, n_distances)
        layers.append(_layer_cost(spec, pieces, n_heads=n_heads, n_used=n_used))
        entering = leaving
    return Cost(embeddings, tuple(layers))


def lengths_after(plan: Plan, layer: int, lengths: Sequence[int], *, fuse: bool) -> list[int]:
    """Counts the pieces of each text after `layer`: those that stay and, where pieces are fused,
    one for all that have left.
    """
    pairs = zip(plan.counts(layer, lengths), lengths, strict=True)
    return [count + (fuse and count < length) for count, length in pairs]


def evaluation_plan(pruning: Pruning) -> Plan:
    """The plan of evaluation mode, whatever mode the pruning is in; nothing is drawn."""
    evaluated = copy(pruning)
    evaluated.training = False
    return evaluated.plan()


class Pieces(NamedTuple):
    """The numbers of pieces of each text that have keys and values in a layer, have queries, and go
    on to the next one; and of distances they are compared with.
    """

    entering: Sequence[int]
    querying: Sequence[int]
    leaving: Sequence[int]
    n_distances: Sequence[int]


def _layer_cost(spec: EncoderSpec, pieces: Pieces, *, n_heads: int, n_used: int) -> LayerCost:
    entering, querying, leaving, n_distances = pieces
    inner, used_width = n_heads * spec.head_width, n_used * spec.head_width
    distances = 0
    for term in spec.position_terms:
        compared = querying if term == "c2p" else entering  # p2c: distances with keys
        distances += 2 * max(n_distances) * spec.width * inner
        distances += 2 * sum(map(mul, compared, n_distances)) * used_width
    return LayerCost(
        n_pieces=sum(entering),
        qkv=2 * spec.width * inner * (sum(querying) + 2 * sum(entering)),
        attention=2 * 2 * sum(map(mul, querying, entering)) * used_width,
        output=2 * sum(leaving) * inner * spec.width,
        feed_forward=2 * (2 + spec.is_gated) * sum(leaving) * spec.width * spec.inner_width,
        distances=distances,
    )
