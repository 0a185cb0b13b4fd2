"""Attention over packed texts, with its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from litotes.encoder.attention.rule import RowRule
from litotes.kernels.backward import pull_back
from litotes.kernels.forward import Attended, Packed, Wanted, attend
from litotes.kernels.tiles import Tiles
from litotes.kernels.towards import Remembered, Towards


def packed_attention(
    packed: Packed,
    rule: RowRule,
    *,
    wanted: Wanted,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    stacked: Tensor | None = None,
    key_tiles: Sequence[Tiles] | None = None,
) -> Attended:
    """Differentiable in query, key, value, α and the bias; what besides `mixed` comes out is not.

    seed: where the kernels find their seed, (1,) int64, with dropout; a backward pass reads it
    again and has to find the same.
    stacked: what query, key and value are slices of, (piece, 3, attention_head, head_width), or key
    and value, (piece, 2, …): its gradient is then written in one piece.
    key_tiles: tiles of the keys, where the queries are others than the keys.
    """
    by_bucket = None if packed.bias is None else packed.bias.by_bucket
    sources = _sources(packed, stacked)
    learned = [tensor for tensor in (rule.alpha, by_bucket, *sources) if tensor is not None]
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in learned)):
        return attend(packed, rule, wanted=wanted, dropout=dropout, seed=seed)
    if key_tiles is None and packed.query_bounds is not packed.key_bounds:
        raise ValueError("queries that are not the keys need key_tiles for their gradient")
    call = _Call(
        packed=replace(packed, query=_NOTHING, key=_NOTHING, value=_NOTHING),
        rule=rule,
        wanted=replace(wanted, row_numbers=True),
        dropout=dropout,
        seed=seed,
        key_tiles=packed.tiles if key_tiles is None else key_tiles,
    )
    return Attended(*_PackedAttention.apply(call, rule.alpha, by_bucket, *sources))


_NOTHING = torch.empty(0)
"""In the place of tensors that autograd saves, and may change where they lie."""


@dataclass(frozen=True)
class _Call:
    """What is the same forward and backward. packed: without query, key and value."""

    packed: Packed
    rule: RowRule
    wanted: Wanted
    dropout: float
    seed: Tensor | None
    key_tiles: Sequence[Tiles]

    def about(
        self, sources: Sequence[Tensor], alpha: Tensor | None, by_bucket: Tensor | None
    ) -> tuple[Packed, RowRule]:
        query, key, value = _split(sources)
        packed = replace(self.packed, query=query, key=key, value=value)
        if packed.bias is not None and by_bucket is not None:
            packed = replace(packed, bias=replace(packed.bias, by_bucket=by_bucket))
        return packed, replace(self.rule, alpha=alpha)


class _PackedAttention(torch.autograd.Function):
    """Its tensors: α, the bias by bucket, and one to three that hold query, key and value."""

    @staticmethod
    def forward(
        ctx: Any, call: _Call, alpha: Tensor | None, by_bucket: Tensor | None, *sources: Tensor
    ) -> tuple[Tensor | None, ...]:
        packed, rule = call.about(sources, alpha, by_bucket)
        out = attend(packed, rule, wanted=call.wanted, dropout=call.dropout, seed=call.seed)
        ctx.call = call
        ctx.save_for_backward(out.mixed, out.row_numbers, out.chosen, alpha, by_bucket, *sources)
        ctx.set_materialize_grads(False)
        extra = [tensor for tensor in (out.received, out.head_size) if tensor is not None]
        ctx.mark_non_differentiable(*extra)
        return out.mixed, out.received, out.head_size

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_mixed: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        n_inputs = len(ctx.needs_input_grad)
        if to_mixed is None:
            return (None,) * n_inputs
        mixed, row_numbers, chosen, alpha, by_bucket, *sources = ctx.saved_tensors
        call: _Call = ctx.call
        packed, rule = call.about(sources, alpha, by_bucket)
        # rows that belong to no text are written by nobody
        to_sources = [source.new_zeros(source.shape) for source in sources]
        learns_alpha = ctx.needs_input_grad[1]
        to_alpha = torch.zeros_like(row_numbers[0]) if learns_alpha else None
        to_bias = pull_back(
            to_mixed.contiguous(),
            packed,
            rule,
            Remembered(row_numbers, mixed, chosen, call.dropout, call.seed),
            Towards(*_split(to_sources), alpha=to_alpha),
            key_tiles=call.key_tiles,
        )
        # (attention_head,)
        by_head = None if to_alpha is None else to_alpha.sum(1).to(alpha.dtype)
        return (None, by_head, to_bias, *to_sources)


def _sources(packed: Packed, stacked: Tensor | None) -> tuple[Tensor, ...]:
    """The tensors that hold query, key and value."""
    if stacked is None:
        return packed.query, packed.key, packed.value
    return (stacked,) if stacked.shape[1] == 3 else (packed.query, stacked)


def _split(sources: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, each (piece, attention_head, head_width), from what holds them."""
    parts: list[Tensor] = []
    for source in sources:
        parts += source.unbind(1) if source.dim() == 4 else [source]
    query, key, value = parts
    return query, key, value
