"""The reference removal has to equal: a walk in which nothing leaves and masks say who is still
there.

One text at a time, every attention head and every piece computed in every layer; written to be
obviously right, not fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.attention.pruning import Plan
from litotes.encoder.encoder import Block, Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import TORCH, Seen
from litotes.encoder.walk import State, second_half


@dataclass
class Walked:
    """hidden: (piece, width) of one text's survivors. origin: where they stood. n_heads: live
    attention heads after each layer.
    """

    hidden: Tensor
    origin: list[int]
    heads: list[list[int]]


def masked_walk(encoder: Encoder, batch: Batch) -> list[Walked]:
    embedded = encoder.embeddings(batch).split(batch.layout.lengths)
    plan = encoder.pruning.plan()
    return [_one(encoder, plan, hidden) for hidden in embedded]


def _one(encoder: Encoder, plan: Plan, hidden: Tensor) -> Walked:
    spec, n = encoder.spec, len(hidden)
    live = torch.ones(n, dtype=torch.bool)
    heads = torch.ones(spec.n_attention_heads, dtype=torch.bool)
    importance, head_importance = torch.zeros(n), torch.zeros(spec.n_attention_heads)
    all_heads = []
    for layer, number in enumerate(spec.walk):
        block = encoder.blocks[number]
        attention = block.attention
        # (head, piece, head_width)
        query, key, value = (
            attention.qkv(_attention_input(block, hidden))
            .view(n, 3, spec.n_attention_heads, -1)
            .permute(1, 2, 0, 3)
        )
        affinity = _affinity(encoder, layer, query, key)
        # A weighting may look at its row as a whole (blocks of keys), so the dead are taken out of
        # the rows it sees and put back as zeros.
        weights = torch.zeros_like(affinity)
        near = _near(spec, layer, n)[live][:, live]
        weights[:, live.nonzero(), live.nonzero().T] = attention.weighting(
            affinity[:, live][:, :, live][None], None if near.all() else near[None, None]
        )[0]
        weights = weights * heads[:, None, None]
        mixed = (weights @ value).transpose(0, 1)  # (piece, head, head_width)
        attention = Seen(mixed.flatten(1), weights.sum(1).T, value.transpose(0, 1))
        importance = _importance(encoder, layer, hidden, importance, attention)
        head_importance += mixed[live].abs().sum((0, 2))
        heads = _best(
            head_importance.masked_fill(~heads, -torch.inf),
            plan.n_heads(layer, spec.n_attention_heads),
        )
        all_heads.append(heads.nonzero().flatten().tolist())
        score = importance.masked_fill(~live, -torch.inf)
        score[0] = torch.inf
        live = _best(score, plan.counts(layer, [n])[0])
        hidden = second_half(TORCH, block, hidden, mixed.flatten(1))
    if encoder.final_norm is not None:
        hidden = encoder.final_norm(hidden)
    return Walked(hidden[live], live.nonzero().flatten().tolist(), all_heads)


def _attention_input(block: Block, hidden: Tensor) -> Tensor:
    if not block.norm_first or block.attention_norm is None:
        return hidden
    return block.attention_norm(hidden)


def _affinity(encoder: Encoder, layer: int, query: Tensor, key: Tensor) -> Tensor:
    """(head, query, key), pair by pair where a family compares pairs."""
    spec, n = encoder.spec, query.shape[1]
    if spec.rotary_base:
        base = spec.local_rotary_base if spec.is_local(layer) else spec.rotary_base
        query, key = _turned(query, base), _turned(key, base)
    affinity = query @ key.transpose(-1, -2)
    if encoder.distances is not None:
        affinity = (affinity + _distance_terms(encoder, layer, query, key)) / 3**0.5
    affinity = affinity / spec.head_width**0.5
    if encoder.relative_bias is not None:
        affinity = affinity + encoder.relative_bias(torch.arange(n)[None])[0]
    return affinity


def _turned(values: Tensor, base: float) -> Tensor:
    """Pairs of numbers as complex ones, each turned by its angle. (head, piece, head_width)"""
    n, width = values.shape[1:]
    speeds = base ** (-torch.arange(width // 2) * 2 / width)
    angles = torch.arange(n)[:, None] * speeds.double()
    pairs = torch.complex(*values.chunk(2, -1)) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], -1)


def _distance_terms(encoder: Encoder, layer: int, query: Tensor, key: Tensor) -> Tensor:
    """c2p + p2c. (head, query, key)"""
    distances, n = encoder.distances, query.shape[1]
    terms = encoder.blocks[encoder.spec.walk[layer]].attention.disentangled
    rows = (
        distances.table.weight if distances.norm is None else distances.norm(distances.table.weight)
    )
    bucket = distances.bucket(torch.arange(n)[None])[0]
    places = (bucket + distances.span).clamp(max=2 * distances.span - 1)
    keys, queries = (
        part(rows).unflatten(-1, (len(query), -1)) for part in (terms.key, terms.query)
    )
    to_position = torch.einsum("hqd,qkhd->hqk", query, keys[places])
    return to_position + torch.einsum("hkd,qkhd->hqk", key, queries[places])


def _near(spec: EncoderSpec, layer: int, n: int) -> Tensor:
    """Which keys a query may read. (query, key)"""
    apart = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    return apart <= (spec.window // 2 if spec.is_local(layer) else n)


def _importance(
    encoder: Encoder, layer: int, hidden: Tensor, importance: Tensor, attention: Seen
) -> Tensor:
    layout = Layout.of([len(hidden)])
    state = State(hidden, layout, layout, layout.positions, importance)
    return encoder.pruning.importance(TORCH, layer, state, attention)


def _best(score: Tensor, count: int) -> Tensor:
    chosen = torch.zeros_like(score, dtype=torch.bool)
    chosen[score.argsort(descending=True, stable=True)[:count]] = True
    return chosen
