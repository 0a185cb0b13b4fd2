"""The encoder's walk on a GPU: the same layers, through kernels, without a wait for the device.

`Encoder.walk` is the definition. Here the texts' boundaries in all layers are known beforehand
(route.py), and who stays is decided on the device (kernels/selection.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from litotes.encoder.attention.attention_sum import AttentionSum
from litotes.encoder.attention.keep_all import KeepAll
from litotes.encoder.attention.rule import LONGEST, RowRule
from litotes.encoder.layout import BucketLayout
from litotes.encoder.route import Route, RouteOptions, Stage
from litotes.kernels.attention import Attended, DistanceBias, Packed, Wanted, packed_attention
from litotes.kernels.products import Products
from litotes.kernels.selection import (
    Staying,
    add_received,
    keep_heads,
    put_back,
    select,
)

if TYPE_CHECKING:
    from litotes.encoder.block import Block
    from litotes.encoder.encoder import Encoder
    from litotes.encoder.spec import EncoderSpec

MOST_HEADS = 32
"""Attention heads of a block: which are left is kept in the bits of a number."""

WIDEST = 128
"""Of an attention head."""


def has_kernels(encoder: Encoder) -> bool:
    """Whether the kernels can compute this encoder: known weightings and prunings, usual sizes,
    norms after attention, and nothing by distance but MPNet's bias.
    """
    spec = encoder.spec
    return (
        _has_known_layers(spec)
        and spec.max_pieces <= LONGEST
        and spec.n_attention_heads <= MOST_HEADS
        and spec.head_width <= WIDEST
        and isinstance(encoder.pruning, AttentionSum | KeepAll)
        and _rule(encoder) is not None
    )


def _has_known_layers(spec: EncoderSpec) -> bool:
    is_newer = spec.norm_first or spec.is_gated or spec.rotary_base or spec.window
    has_all_offsets = spec.attention_bias and spec.feed_forward_bias and spec.norm_bias
    return spec.has_positions and has_all_offsets and not is_newer and not spec.position_terms


def route_options(encoder: Encoder, *, firsts_only: bool, trains: bool) -> RouteOptions:
    """What decides the route of texts through this encoder; a plan drawn anew in training."""
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
    """Whether affinities may be held in half precision."""
    if trains and encoder.relative_bias is not None:
        return False  # the gradient of a bias looks at whole rows
    if rule.name == "powers":
        return _type(encoder) == torch.bfloat16  # what float16 tells more would be lost
    return _type(encoder) != torch.float32


def _type(encoder: Encoder) -> torch.dtype:
    """That of queries, keys and values: here, where autocast may be on."""
    weight = encoder.block(0).attention.qkv.weight
    device = weight.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return weight.dtype


def _rule(encoder: Encoder) -> RowRule | None:
    """The first block's rule: all blocks have one weighting, and only its numbers may differ."""
    return encoder.block(0).attention.weighting.row_rule(encoder.device)


@dataclass(frozen=True)
class Walked:
    """The states (piece, width) after the last layer, and the boundaries they have.

    stage: None where each text has one row, its first piece.
    """

    hidden: Tensor
    stage: Stage | None

    @property
    def layout(self) -> BucketLayout:
        """For heads; only the device knows the texts' lengths."""
        if self.stage is None:
            return BucketLayout.of_firsts(len(self.hidden), self.hidden.device)
        return BucketLayout.of_bounds(self.stage.bounds, self.stage.n_pieces)


class KernelWalk:
    """Walks a route.

    products: what computes between one attention and the next. seeds: of dropout in each layer's
    attention, (layer,); None: no dropout.
    """

    def __init__(
        self, encoder: Encoder, route: Route, products: Products, seeds: Tensor | None = None
    ) -> None:
        self.encoder, self.route, self.products, self.seeds = encoder, route, products, seeds
        self.pruning = encoder.pruning
        self.plan = route.options.plan
        whole = route.stages[0]
        self.restores = (
            self.pruning.restore and len(route.stages) > 1 and not route.options.firsts_only
        )
        device = whole.bounds.device
        self.origin = route.positions  # (piece,)
        self.alive: Tensor | None = None  # (text,)
        self.importance = torch.zeros(whole.n_pieces, device=device)
        heads = encoder.spec.n_attention_heads
        self.head_importance = torch.zeros(route.n_texts, heads, device=device)
        self.restored: Tensor | None = None
        self.buckets = None
        if encoder.relative_bias is not None:
            self.buckets = encoder.relative_bias.bucket_by_distance(LONGEST)

    def walk(self) -> Walked:
        """From the route's pieces to the last layer's states."""
        self.route.lay_out()
        hidden = self.products.embed(self.encoder.embeddings, self.route)
        if self.restores:
            self.restored = torch.zeros_like(hidden)
        blocks = self.encoder.spec.walk
        for layer, number in enumerate(blocks):
            block = self.encoder.block(number)
            if self.route.options.firsts_only and layer == len(blocks) - 1:
                return Walked(self._firsts(layer, block, hidden), None)
            hidden = self._layer(layer, block, hidden)
        stage = self.route.into(len(blocks))
        if self.restored is None:
            return Walked(hidden, stage)
        whole = self.route.stages[0]
        restored = put_back(self.restored, hidden, self.origin, stage.bounds, whole.bounds)
        return Walked(restored, whole)

    def _layer(self, layer: int, block: Block, hidden: Tensor) -> Tensor:
        stage = self.route.into(layer)
        attended = self._attend(layer, block, hidden, stage)
        mixed = attended.mixed.flatten(1)  # (piece, attention_head × head_width)
        if attended.received is None:
            return self.products.finish(block, hidden, mixed)
        factor = None
        if isinstance(self.pruning, AttentionSum):
            factor = self.pruning.importance_factor(layer, hidden)
            mixed = self.pruning.with_importance_gradient(layer, hidden, mixed)
        received = attended.received
        # what is looked at lives until the layer ends: somebody may still be reading it
        before = self.importance, self.origin, self.head_importance, self.alive

        def choose() -> Staying:
            self._keep_heads(layer, attended.head_size, stage)
            return self._choose(layer, received, stage, factor, hidden)

        def count() -> None:
            self._keep_heads(layer, attended.head_size, stage)
            self.importance = add_received(
                self.importance, received, stage.n_tiles, stage.bounds, factor=factor
            )

        if self.route.removes(layer):
            n_after = self.route.into(layer + 1).n_pieces
            after = self.products.finish_staying(
                block, hidden, mixed, n_after, choose, fuses=self.pruning.fuse
            )
        else:
            after = self.products.finish_beside(block, hidden, mixed, count)
        del before
        return after

    def _choose(
        self, layer: int, received: Tensor, stage: Stage, factor: Tensor | None, hidden: Tensor
    ) -> Staying:
        """Who goes on; those who leave are put back where they will be read."""
        staying = self._select(layer, received, stage, factor)
        if self.restored is not None:
            bounds, whole = stage.bounds, self.route.stages[0].bounds
            self.restored = put_back(
                self.restored, hidden, self.origin, bounds, whole, staying=staying
            )
        self.origin, self.importance = staying.origin, staying.importance
        return staying

    def _select(self, layer: int, received: Tensor, stage: Stage, factor: Tensor | None) -> Staying:
        after = self.route.into(layer + 1)
        return select(
            self.importance,
            received,
            stage.n_tiles,
            self.origin,
            stage.bounds,
            after.bounds,
            n_after=after.n_pieces,
            factor=factor,
            kept=after.kept if self.pruning.fuse else None,
        )

    def _keep_heads(self, layer: int, head_size: Tensor | None, stage: Stage) -> None:
        if head_size is None:
            return
        n_heads = self.plan.n_heads(layer, self.encoder.spec.n_attention_heads)
        self.head_importance, self.alive = keep_heads(
            self.head_importance, head_size, stage.n_tiles, self.alive, n_heads
        )

    def _attend(self, layer: int, block: Block, hidden: Tensor, stage: Stage) -> Attended:
        attention = block.attention
        qkv = attention.project(hidden)  # (piece, 3, attention_head, head_width)
        query, key, value = qkv.unbind(1)
        n_heads = self.encoder.spec.n_attention_heads
        importance = "none"
        if self.plan.needs_importance(layer, n_heads):
            by_value = isinstance(self.pruning, AttentionSum) and self.pruning.by_value
            importance = "value" if by_value else "received"
        return packed_attention(
            Packed(
                query,
                key,
                value,
                stage.bounds,
                stage.bounds,
                stage.tiles,
                bias=self._bias(block),
                alive=self.alive,
            ),
            self._rule(block),
            wanted=Wanted(
                importance,
                head_size=self.plan.needs_head_importance(layer, n_heads),
                n_slots=stage.n_slots,
            ),
            dropout=self._dropout(block),
            seed=self._seed(layer),
            stacked=qkv,
        )

    def _firsts(self, layer: int, block: Block, hidden: Tensor) -> Tensor:
        """The last layer where only first pieces are read. (text, width)"""
        stage, attention = self.route.into(layer), block.attention
        # texts beyond the real ones are empty and may begin after the last row
        starts = stage.bounds[:-1].long().clamp(max=stage.n_pieces - 1)
        firsts = hidden[starts]  # (text, width)
        (query,) = attention.project_part(firsts, slice(attention.inner)).unbind(1)
        key_value = attention.project_part(hidden, slice(attention.inner, None))
        key, value = key_value.unbind(1)
        attended = packed_attention(
            Packed(
                query,
                key,
                value,
                self.route.first_bounds,
                stage.bounds,
                self.route.first_tiles,
                bias=self._bias(block),
                alive=self.alive,
            ),
            self._rule(block),
            wanted=Wanted(),
            dropout=self._dropout(block),
            seed=self._seed(layer),
            stacked=key_value,
            key_tiles=stage.tiles,
        )
        return self.products.finish(block, firsts, attended.mixed.flatten(1))

    def _rule(self, block: Block) -> RowRule:
        rule = block.attention.weighting.row_rule(self.encoder.device)
        assert rule is not None
        return rule

    def _bias(self, block: Block) -> DistanceBias | None:
        if self.encoder.relative_bias is None or self.buckets is None:
            return None
        by_bucket = self.encoder.relative_bias.by_bucket.weight.float()  # (bucket, attention_head)
        if not block.attention.has_all_heads:
            # one by one: a list as an index is copied to the GPU, which no graph can record
            by_bucket = torch.stack([by_bucket[:, head] for head in block.attention.heads], 1)
        return DistanceBias(self.buckets, by_bucket.contiguous(), self.origin)

    def _dropout(self, block: Block) -> float:
        return 0.0 if self.seeds is None else block.attention.dropout

    def _seed(self, layer: int) -> Tensor | None:
        return None if self.seeds is None else self.seeds[layer : layer + 1]


def dropout_seeds(seed: Tensor, n_layers: int) -> Tensor:
    """A seed for the attention of every layer, from one. (layer,)"""
    return seed + torch.arange(n_layers, device=seed.device)
