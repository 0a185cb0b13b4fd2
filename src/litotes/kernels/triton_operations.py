"""The walk's operations on a GPU: by kernels, without a wait for the device.

The texts' boundaries in all layers are known beforehand (route.py), and who stays is decided on the
device (selection.py). What is not here is torch's (encoder/operations.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.encoder.attention.weighting import LONGEST, RowRule
from litotes.encoder.encoder import Attention, Embeddings, Encoder
from litotes.encoder.layout import BucketLayout, Plan
from litotes.encoder.operations import Choice, Encoding, Operations, Projected, Seen, State, Wanted
from litotes.encoder.walk import walk
from litotes.kernels.attention import DistanceBias, Packed, packed_attention
from litotes.kernels.attention import Wanted as Written
from litotes.kernels.norm import add_and_norm, embed
from litotes.kernels.route import Route, RouteOptions, Stage
from litotes.kernels.selection import (
    Staying,
    add_received,
    keep_heads,
    put_back,
    select,
    take,
    take_both,
)

A = TypeVar("A")

MOST_HEADS = 32
"""Attention heads of a block: which are left is kept in the bits of a number."""

WIDEST = 128
"""Of an attention head."""

TANH_GELUS = ("gelu", "gelu_new", "gelu_pytorch_tanh")
"""Activations a product can end with. It knows only the tanh form, which differs from `gelu` by
0.0005 at most: less than half precision rounds away.
"""

MOST_STAY = 0.5
FEW_LEAVE = 4096
"""The share of rows that stay, or the number that leave, from which on a gather before the output
product costs more than it saves: it is a launch and a pass over memory, it waits for the choice,
and the product after it is a twelfth of a layer.
"""

FEWER_LEAVE = 256 * 768**2
"""Rows that leave times the width squared, up to which even the rest of the layer is computed for
all: some microseconds, in which the choice is made.
"""


def has_kernels(encoder: Encoder) -> bool:
    """Tells whether the kernels can compute this encoder: weightings they know, usual sizes, norms
    after attention, and nothing by distance but MPNet's bias. Torch computes the others as a whole.
    """
    spec = encoder.spec
    is_newer = spec.norm_first or spec.is_gated or spec.rotary_base or spec.window
    has_all_offsets = spec.attention_bias and spec.feed_forward_bias and spec.norm_bias
    return (
        spec.has_positions
        and has_all_offsets
        and not is_newer
        and not spec.position_terms
        and spec.max_pieces <= LONGEST
        and spec.n_attention_heads <= MOST_HEADS
        and spec.head_width <= WIDEST
        and _rule(encoder) is not None
    )


def route_options(encoder: Encoder, *, firsts_only: bool, trains: bool) -> RouteOptions:
    """Collects what decides the route through this encoder; in training, a plan drawn anew."""
    plan = encoder.pruning.plan()
    rule = _rule(encoder)
    assert rule is not None
    return RouteOptions(
        plan=plan.for_firsts_only() if firsts_only else plan,
        rule=rule.name,
        shift=rule.block - 1,
        fuse=encoder.pruning.fuse,
        firsts_only=firsts_only,
        trains=trains,
        halves=_may_be_halves(encoder, rule, trains=trains),
    )


def _may_be_halves(encoder: Encoder, rule: RowRule, *, trains: bool) -> bool:
    """Tells whether affinities may be held in half precision."""
    if trains and encoder.relative_bias is not None:
        return False  # the gradient of a bias looks at whole rows
    weight = encoder.block(0).attention.qkv.weight
    dtype, device = weight.dtype, weight.device.type
    if torch.is_autocast_enabled(device):  # here, where it may be on
        dtype = torch.get_autocast_dtype(device)
    if rule.name == "powers":
        return dtype == torch.bfloat16  # what float16 tells more would be lost
    return dtype != torch.float32


def _rule(encoder: Encoder) -> RowRule | None:
    """The first block's rule: all blocks have one weighting, and only its numbers may differ."""
    return encoder.block(0).attention.weighting.row_rule(encoder.device)


def walk_route(encoder: Encoder, ops: TritonOperations) -> Encoding:
    """Encodes a route's texts. `layout` is a bucket's: only the device knows the texts' lengths."""
    ops.route.lay_out()
    encoding: Encoding = walk(
        ops,
        encoder,
        ops.route,  # type: ignore[arg-type]
        plan=ops.route.options.plan,
        firsts_only=ops.route.options.firsts_only,
    )
    ops.side.join()
    hidden, stage = encoding.hidden, encoding.layout
    if stage is None:
        layout = BucketLayout.of_firsts(len(hidden), hidden.device)
    else:
        layout = BucketLayout.of_bounds(stage.bounds, stage.n_pieces)
    return Encoding(hidden, layout, encoding.origin)


class SideStream:
    """Small work next to large work on a GPU, in a recorded pass as well. Passes that may run at
    the same time must not share one.
    """

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._is_ahead = False
        self._reads: list[object] = []

    def run(self, work: Callable[[], A], *reads: object, device: torch.device) -> A:
        """Runs the work, on a GPU next to what follows; its result is to be read after `join`.

        reads: what it reads, which lives until then: memory that is given back earlier may be
        written by the one while the other still reads it.
        """
        if device.type != "cuda":
            return work()
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))
        self._is_ahead = True
        self._reads += reads
        with torch.cuda.stream(self._stream):
            return work()

    def join(self) -> None:
        """Lets what follows wait for the work."""
        if self._is_ahead and self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        self._is_ahead = False
        self._reads.clear()


@dataclass(frozen=True)
class Sum:
    """(importance + received) × factor, which `select` adds up as it goes."""

    importance: Tensor
    received: Tensor
    factor: Tensor | None


@dataclass(frozen=True)
class Alive:
    """importance: (text, attention_head). bits: the heads each text still uses, (text,); used: as
    in torch's, which selects none: the kernels leave out those that are gone.
    """

    importance: Tensor
    bits: Tensor | None
    used: None = None


@dataclass(frozen=True)
class Going:
    """n_norms: how many norms are computed of all rows before those that stay are gathered; None:
    they are gathered before the output product.
    """

    staying: Staying
    n_norms: int | None


@dataclass(frozen=True)
class Waiting:
    """Rows of which only those in `staying` go on, once so many norms have been computed of all."""

    rows: Tensor
    staying: Staying
    n_norms: int


class TritonOperations(Operations):
    """Computes one route.

    fused: without gradients and dropout: bias and activation inside a product, residual and norm in
    one pass, rows gathered where that costs least, who stays is decided alongside.
    seeds: of dropout in each layer's attention, (layer,); None: no dropout.
    """

    def __init__(
        self,
        route: Route,
        *,
        fused: bool,
        seeds: Tensor | None = None,
        side: SideStream | None = None,
    ) -> None:
        self.route, self.fused, self.seeds = route, fused, seeds
        self.side = side or SideStream()
        self._buckets: Tensor | None = None
        self._firsts: tuple[Tensor, Tensor] | None = None

    # Products and norms

    def embed(self, embeddings: Embeddings, batch: Any) -> Tensor:
        if not self.fused:
            return super().embed(embeddings, batch)
        assert embeddings.position is not None  # `has_kernels` sees to it
        return embed(
            batch.pieces,
            batch.positions,
            batch.segments,
            tables=(embeddings.piece, embeddings.position, embeddings.segment),
            norm=embeddings.norm,
            first_position=embeddings.first_position,
        )

    def linear(self, layer: nn.Linear, x: Any, activation: str | None = None) -> Any:
        if isinstance(x, Waiting):
            return replace(x, rows=self.linear(layer, x.rows, activation))
        if self.fused and activation in TANH_GELUS and x.dtype != torch.float32:
            # one pass over memory less
            return torch._addmm_activation(layer.bias, x, layer.weight.t(), use_gelu=True)
        if self.fused:
            x = functional.linear(x, layer.weight, layer.bias)
            return x if activation is None else self.activate(activation, x)
        return super().linear(layer, x, activation)

    def add_norm(self, norm: nn.LayerNorm, x: Any, residual: Any) -> Any:
        if not self.fused:
            return super().add_norm(norm, x, residual)
        if not isinstance(residual, Waiting):
            return add_and_norm(x, residual, norm)
        if residual.n_norms:
            rows = add_and_norm(x.rows, residual.rows, norm)
            return replace(residual, rows=rows, n_norms=residual.n_norms - 1)
        self.side.join()
        late = isinstance(x, Waiting)
        rows = x.rows if late else x
        places = residual.staying.places
        return add_and_norm(rows, residual.rows, norm, places, both_at_places=late)

    def dropout(self, dropout: nn.Dropout, x: Any) -> Any:
        return x if self.fused else dropout(x)

    # Attention

    def context(self, encoder: Encoder, texts: Any, whole: Any, origin: Any) -> Any:
        """A stage knows its tiles already."""

    def attend(
        self,
        encoder: Encoder,
        layer: int,
        state: State,
        projected: Projected,
        wanted: Wanted,
        *,
        firsts: bool,
    ) -> Seen:
        """received: (slot, attention_head, piece). head_sizes: (text, slot, attention_head)."""
        self.side.join()
        attention, stage = encoder.block_of(layer).attention, state.texts
        rule = attention.weighting.row_rule(encoder.device)
        assert rule is not None
        importance = "value" if wanted.by_value else "received"
        attended = packed_attention(
            Packed(
                projected.query,
                projected.key,
                projected.value,
                self.route.first_bounds if firsts else stage.bounds,
                stage.bounds,
                self.route.first_tiles if firsts else stage.tiles,
                bias=self._bias(encoder, attention, state),
                alive=None if state.heads is None else state.heads.bits,
            ),
            rule,
            wanted=Written(
                importance if wanted.importance else "none",
                head_size=wanted.head_sizes,
                n_slots=1 if firsts else stage.n_slots,
            ),
            dropout=0.0 if self.seeds is None else attention.dropout,
            seed=None if self.seeds is None else self.seeds[layer : layer + 1],
            stacked=projected.source,
        )
        mixed = attended.mixed.flatten(1)  # (piece, attention_head × head_width)
        return Seen(mixed, attended.received, head_sizes=attended.head_size)

    def _bias(self, encoder: Encoder, attention: Attention, state: State) -> DistanceBias | None:
        if encoder.relative_bias is None:
            return None
        if self._buckets is None:
            self._buckets = encoder.relative_bias.bucket_by_distance(LONGEST)
        by_bucket = encoder.relative_bias.by_bucket.weight.float()  # (bucket, attention_head)
        if not attention.has_all_heads:
            # one by one: a list as an index is copied to the GPU, which no graph can record
            by_bucket = torch.stack([by_bucket[:, head] for head in attention.heads], 1)
        return DistanceBias(self._buckets, by_bucket.contiguous(), state.origin)

    # Pruning

    def add_received(
        self, importance: Tensor | None, seen: Seen, factor: Tensor | None, *, by_value: bool
    ) -> Sum:
        if importance is None:
            importance = torch.zeros(seen.received.shape[-1], device=seen.mixed.device)
        return Sum(importance, seen.received, factor)

    def add_up(self, state: State) -> Tensor:
        """Adds up importance; nothing in the layer waits for it."""
        if not isinstance(state.importance, Sum):
            return state.importance
        parts, stage = state.importance, state.texts

        def work() -> Tensor:
            return add_received(
                parts.importance, parts.received, stage.n_tiles, stage.bounds, factor=parts.factor
            )

        return self._beside(work, parts)

    def _beside(self, work: Callable[[], A], *reads: object) -> A:
        """Runs the work next to what follows, where that is nothing with a gradient."""
        if not self.fused:
            return work()
        return self.side.run(work, *reads, device=self.route.block.device)

    def keep_heads(self, state: State, seen: Seen, n: int) -> Alive:
        size, before = seen.head_sizes, state.heads
        if before is None:
            n_heads = size.shape[-1]
            before = Alive(torch.zeros(self.route.n_texts, n_heads, device=size.device), None)

        def work() -> tuple[Tensor, Tensor]:
            return keep_heads(before.importance, size, state.texts.n_tiles, before.bits, n)

        return Alive(*self._beside(work, before, size))

    def select(self, state: State, plan: Plan, layer: int, *, fuse: bool) -> Choice:
        stage, after = state.texts, self.route.into(layer + 1)
        n_before, width = state.hidden.shape
        n_leaving, n_norms = n_before - after.n_pieces, None
        if self.fused and not fuse:
            if n_leaving * width**2 <= FEWER_LEAVE:
                n_norms = 1
            elif n_leaving <= FEW_LEAVE or after.n_pieces >= MOST_STAY * n_before:
                n_norms = 0
        parts, n_tiles = state.importance, stage.n_tiles
        if not isinstance(parts, Sum):  # a pruning's own measure: as if nothing had been received
            parts = Sum(parts.float(), parts.new_zeros(1, 1, n_before).float(), None)
            n_tiles = torch.ones_like(n_tiles)

        def work() -> Staying:
            return select(
                parts.importance,
                parts.received,
                n_tiles,
                state.origin,
                stage.bounds,
                after.bounds,
                n_after=after.n_pieces,
                factor=parts.factor,
                kept=after.kept if fuse else None,
            )

        staying = work() if n_norms is None else self._beside(work, parts, state)
        return Choice(after, staying.origin, staying.importance, Going(staying, n_norms))

    def keep(self, choice: Choice, hidden: Tensor, mixed: Tensor) -> tuple[Any, Any]:
        staying, n_norms = choice.how.staying, choice.how.n_norms
        if not self.fused or staying.fusing is not None:
            return take_both(hidden, mixed, staying)
        if n_norms is None:  # the residual is read where it lies: one gather less
            return Waiting(hidden, staying, 0), take(mixed, staying)
        return Waiting(hidden, staying, n_norms), Waiting(mixed, staying, n_norms)

    def remember(self, state: State, choice: Choice) -> Any:
        restored: Tensor = state.removed
        if restored is None:
            whole = state.whole
            restored = state.hidden.new_zeros(whole.n_pieces, state.hidden.shape[1])

        def work() -> Tensor:
            return self._put_back(restored, state, choice.how.staying)

        return work() if choice.how.n_norms is None else self._beside(work, restored, state)

    def restore(self, state: State) -> State:
        self.side.join()
        hidden = self._put_back(state.removed, state)
        return replace(state, hidden=hidden, texts=state.whole, origin=self.route.positions)

    def _put_back(self, restored: Tensor, state: State, staying: Staying | None = None) -> Tensor:
        bounds, whole = state.texts.bounds, state.whole.bounds
        return put_back(restored, state.hidden, state.origin, bounds, whole, staying=staying)

    # Heads

    def first_pieces(self, hidden: Tensor, texts: Stage) -> Tensor:
        """Gathers once, in the last layer, both what attention reads and what is added to it."""
        if self._firsts is None or self._firsts[0] is not hidden:
            # texts beyond the real ones are empty and may begin after the last row
            starts = texts.bounds[:-1].long().clamp(max=texts.n_pieces - 1)
            self._firsts = hidden, hidden[starts]
        return self._firsts[1]

    def firsts(self, texts: Stage) -> tuple[None, None]:
        return None, None
