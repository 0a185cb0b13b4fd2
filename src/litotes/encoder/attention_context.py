"""What the attention of a layer needs to know about its pieces: which texts they make up, where
they stood, and what they may read.

Pieces that leave do not move the others: all that depends on distances goes by `origin`, the places
pieces had in their whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from litotes.encoder.attention.rows import Rows
from litotes.encoder.attention.survivors import Survivors
from litotes.encoder.disentangled import DistanceEmbeddings, Distances
from litotes.encoder.embeddings import RelativeBias
from litotes.encoder.rotary import Turn
from litotes.encoder.spec import EncoderSpec


@dataclass(frozen=True)
class AttentionContext:
    """bias: what is added to the affinities, one for each block of rows or None.
    heads: the attention heads each text still uses, (text, attention_head); None: all.
    live: for each block of rows the keys a query may read, (text, 1, query or 1, key), or None
    where it may read all; None altogether: all that are real.
    turn: the angles of rotary positions. distances: for disentangled attention.
    """

    rows: Rows
    bias: Sequence[Tensor | None]
    heads: Tensor | None = None
    live: Sequence[Tensor | None] | None = None
    turn: Turn | None = None
    distances: Distances | None = None

    @property
    def live_keys(self) -> Sequence[Tensor | None]:
        return self.rows.live if self.live is None else self.live

    def of_firsts(self) -> AttentionContext:
        """The same for queries of each text's first piece alone."""
        layout = self.rows.layout
        return AttentionContext(
            Rows(layout.firsts, self.rows.apart),
            [_first_query(block) for block in self.bias],
            self.heads,
            [_first_query(block) for block in self.live_keys],
            None if self.turn is None else self.turn.select(layout.starts),
            None if self.distances is None else self.distances.of_firsts(),
        )


def _first_query(block: Tensor | None) -> Tensor | None:
    """(text, attention_head, query, key) → (text, attention_head, 1, key)"""
    return None if block is None else block[:, :, :1]


def make_contexts(
    spec: EncoderSpec,
    survivors: Survivors,
    relative_bias: RelativeBias | None,
    distances: DistanceEmbeddings | None,
) -> tuple[AttentionContext, ...]:
    """Of layers that read the whole text and, where there are such, of those with a window."""
    rows = Rows.of(survivors.layout)
    # a fused piece stands nowhere: it is given the place of the first
    origin = survivors.origin.clamp(min=0)
    context = AttentionContext(rows, [None] * len(rows.live), survivors.heads)
    if relative_bias is not None:
        bias = [relative_bias(places) for places in rows.places_in_text(origin)]
        context = replace(context, bias=bias)
    if distances is not None:
        lengths = survivors.whole.lengths if rows.apart else [survivors.whole.longest]
        pairs = distances(rows.places_in_text(origin), lengths)
        context = replace(context, distances=pairs)
    whole = replace(context, turn=_turn(spec, spec.rotary_base, origin))
    if not spec.window:
        return (whole,)
    local = replace(context, turn=_turn(spec, spec.local_rotary_base, origin))
    # in a short text all pieces are near each other
    if spec.window // 2 < survivors.whole.longest - 1:
        local = replace(local, live=_near_keys(spec, rows, origin))
    return (whole, local)


def _turn(spec: EncoderSpec, base: float, origin: Tensor) -> Turn | None:
    return Turn.of(origin, base, spec.head_width) if base else None


def _near_keys(spec: EncoderSpec, rows: Rows, origin: Tensor) -> list[Tensor]:
    """For each block of rows, the keys within each query's window. (text, 1, query, key)"""
    found = []
    for places, live in zip(rows.places_in_text(origin), rows.live, strict=True):
        apart = (places[:, :, None] - places[:, None, :]).abs()
        near = (apart <= spec.window // 2)[:, None]
        found.append(near if live is None else near & live)
    return found
