"""The same weights in another encoder: with other seams of attention, or with fewer attention heads
for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.encoder import Block, Encoder
from litotes.encoder.families import EncoderSpec


def rebuild_encoder(encoder: Encoder, **choices: Any) -> Encoder:
    """A copy with other choices for the seams (as `EncoderSpec` names them); the parameters of a
    new seam start afresh.
    """
    fresh = Encoder(replace(encoder.spec, **choices)).to(encoder.device)
    names = fresh.state_dict().keys()
    known = {name: tensor for name, tensor in encoder.state_dict().items() if name in names}
    fresh.load_state_dict(known, strict=False)
    return fresh.train(encoder.training)


def keep_heads(encoder: Encoder, heads_kept: Sequence[Sequence[int]]) -> Encoder:
    """A copy whose blocks have only these attention heads, by their original numbers: the others
    leave the projections for good.

    The output is that of the whole encoder with the other heads' outputs set to zero.
    """
    _check_heads(encoder, heads_kept)
    heads_kept = tuple(tuple(sorted(kept)) for kept in heads_kept)
    small = Encoder(replace(encoder.spec, heads_kept=heads_kept)).to(encoder.device)
    state = encoder.state_dict()
    for name, tensor in state.items():
        block, _, part = name.removeprefix("blocks.").partition(".attention.")
        if part:
            before = list(encoder.spec.heads_of(int(block)))
            places = [before.index(head) for head in heads_kept[int(block)]]
            state[name] = _select_heads(part, tensor, places, n_heads=len(before))
    small.load_state_dict(state)
    return small.train(encoder.training)


def _check_heads(encoder: Encoder, heads_kept: Sequence[Sequence[int]]) -> None:
    for block, kept in enumerate(heads_kept):
        present = list(encoder.spec.heads_of(block))
        if not kept or not set(kept) <= set(present):
            raise UserError(
                f"Block {block} has the attention heads {present}; it cannot keep {list(kept)}."
            )
    if len(heads_kept) != encoder.spec.n_blocks:
        raise UserError(
            f"heads_kept names the heads of {len(heads_kept)} blocks, the encoder has"
            f" {encoder.spec.n_blocks}."
        )


def _select_heads(name: str, tensor: Tensor, places: Sequence[int], *, n_heads: int) -> Tensor:
    """The part of a tensor of attention that belongs to the heads at these places."""
    if name.startswith("qkv."):
        return tensor.unflatten(0, (3, n_heads, -1))[:, places].flatten(0, 2)
    if name.startswith("disentangled."):
        return tensor.unflatten(0, (n_heads, -1))[places].flatten(0, 1)
    if name == "output.weight":
        return tensor.unflatten(1, (n_heads, -1))[:, places].flatten(1)
    # a number per attention head
    if name.startswith("weighting.") and tensor.ndim and tensor.shape[0] == n_heads:
        return tensor[places]
    return tensor


def evenly_spaced(n: int, *, of: int) -> list[int]:
    """N of so many layers at equal distances, the last one among them (Sanh et al. 2019, arXiv
    1910.01108, §3, take every second).
    """
    return [-(-(number + 1) * of // n) - 1 for number in range(n)]


def layers_to_keep(spec: EncoderSpec, n: int) -> list[int]:
    """As evenly spaced as the kinds of layers allow, where a layer's number says what it sees."""
    layers = evenly_spaced(n, of=spec.n_layers)
    if not (spec.norm_first or spec.window):
        return layers
    kept = [0]
    for new, wanted in enumerate(layers[1:], start=1):
        alike = [
            old
            for old in range(kept[-1] + 1, spec.n_layers)
            if spec.is_local(old) == spec.is_local(new)
        ]
        if not alike:
            raise UserError(f"Keep fewer layers than {n}: the kinds of layers do not add up.")
        kept.append(min(alike, key=lambda old: abs(old - wanted)))
    return kept


def _check_kinds(spec: EncoderSpec, layers: Sequence[int]) -> None:
    """A layer's number may say whether it sees the whole text, and that it is the first."""
    is_moved = any(spec.is_local(old) != spec.is_local(new) for new, old in enumerate(layers))
    if is_moved or (spec.norm_first and layers[0] != 0):
        raise UserError(
            f"Layers {list(layers)} of a {spec.family} encoder cannot stand alone: layer 0 has to"
            f" come first, and of the kept ones every {spec.global_every}. from it has to be one"
            f" that sees the whole text (0, {spec.global_every}, {2 * spec.global_every} …)."
        )


def keep_layers(encoder: Encoder, layers: Sequence[int]) -> Encoder:
    """A copy that walks only these layers; where layers share their weights, as many of them."""
    spec = encoder.spec
    if not layers or not set(layers) <= set(range(spec.n_layers)):
        raise UserError(
            f"The encoder has {spec.n_layers} layers, counted from 0; it cannot keep"
            f" {list(layers)}."
        )
    _check_kinds(spec, layers)
    if spec.n_layer_groups:
        small = Encoder(replace(spec, n_layers=len(layers))).to(encoder.device)
        small.load_state_dict(encoder.state_dict())
        return small.train(encoder.training)
    heads_kept = [spec.heads_kept[layer] for layer in layers] if spec.heads_kept else ()
    small = Encoder(replace(spec, n_layers=len(layers), heads_kept=heads_kept)).to(encoder.device)
    state = {}
    for name, tensor in encoder.state_dict().items():
        head, _, rest = name.removeprefix("blocks.").partition(".")
        if not name.startswith("blocks."):
            state[name] = tensor
        elif int(head) in layers:
            state[f"blocks.{list(layers).index(int(head))}.{rest}"] = tensor
    small.load_state_dict(state)
    return small.train(encoder.training)


@dataclass(frozen=True)
class _Kept:
    """What stays: columns everywhere, heads and inner units by block. All (place,)."""

    columns: Tensor
    heads: Sequence[Tensor]
    units: Sequence[Tensor]


def narrow(encoder: Encoder, width: int) -> Encoder:
    """A copy of this width, with as many attention heads as fit and inner units in proportion: the
    columns, attention heads and inner units that the wide one uses most.

    How much a block uses column c of its input, whose norm has gain γ, by the matrix W that reads
    it:

        u_c = Σ_blocks Σ_W γ_c² ‖W[:, c]‖²

    how much an attention head h gives, by its values and its part of the output projection, and an
    inner unit j, by what it reads and writes:

        u_h = ‖W_V[h]‖² ‖W_O[:, h]‖²        u_j = ‖W_1[j]‖² ‖W_2[:, j]‖²

    Attention heads keep their width. The result is a place to start learning from, not a model.
    """
    spec = encoder.spec
    check_width(spec, width)
    n_heads = width // spec.head_width
    smaller = replace(
        spec,
        width=width,
        n_attention_heads=n_heads,
        inner_width=max(1, round(spec.inner_width * width / spec.width)),
    )
    if spec.embedding_width and not spec.has_projection:
        smaller = replace(smaller, embedding_width=width)
    kept = _choose(encoder, smaller)
    small = Encoder(smaller).to(encoder.device)
    state = {}
    for name, tensor in encoder.state_dict().items():
        state[name] = _cut(name, tensor, kept, spec)
    small.load_state_dict(state)
    return small.train(encoder.training)


def check_width(spec: EncoderSpec, width: int) -> None:
    """Refuses a width that whole attention heads do not fill, or one that is not narrower."""
    step = spec.head_width
    possible = [step * n for n in range(1, spec.n_attention_heads)]
    if spec.has_projection and spec.embedding_width in possible:
        possible.remove(spec.embedding_width)  # a file of that width would have no projection
    if spec.norm_first or spec.is_gated or spec.position_terms:
        raise UserError(
            f"An encoder of the family {spec.family} cannot be made narrower. Keep fewer of its"
            " layers instead."
        )
    if spec.heads_kept:
        raise UserError("An encoder without some of its attention heads cannot be made narrower.")
    if width not in possible:
        raise UserError(
            f"A width of {width} cannot be cut from {spec.width}: attention heads are {step} wide."
            f" Choose one of {', '.join(map(str, possible))}."
        )


def _choose(encoder: Encoder, smaller: EncoderSpec) -> _Kept:
    blocks = [encoder.block(number) for number in range(encoder.spec.n_blocks)]
    columns = _largest(_column_use(encoder, blocks), smaller.width)
    uses = [_head_use(block) for block in blocks]
    if encoder.relative_bias is not None:
        # one bias for all blocks: they must keep the same heads
        uses = [torch.stack([use / use.sum() for use in uses]).sum(0)] * len(blocks)
    heads = [_largest(use, smaller.n_attention_heads) for use in uses]
    units = [_largest(_unit_use(block), smaller.inner_width) for block in blocks]
    return _Kept(columns, heads, units)


def _column_use(encoder: Encoder, blocks: Sequence[Block]) -> Tensor:
    """(column,)"""
    gain = torch.ones(encoder.spec.width, device=encoder.device)
    if not encoder.spec.has_projection:
        gain = _gain(encoder.embeddings.norm)
    use = torch.zeros_like(gain)
    for block in blocks:
        use = use + (gain * block.attention.qkv.weight).square().sum(0)
        use = use + (_gain(block.attention_norm) * block.inner.weight).square().sum(0)
        gain = _gain(block.outer_norm)
    return use.detach()


def _gain(norm: nn.Module) -> Tensor:
    assert isinstance(norm, nn.LayerNorm)
    return norm.weight


def _head_use(block: Block) -> Tensor:
    """(attention_head,)"""
    n_heads = block.attention.n_heads
    value = block.attention.qkv.weight.unflatten(0, (3, n_heads, -1))[2]
    output = block.attention.output.weight.unflatten(1, (n_heads, -1))
    return (value.square().sum((1, 2)) * output.square().sum((0, 2))).detach()


def _unit_use(block: Block) -> Tensor:
    """(unit,)"""
    return (block.inner.weight.square().sum(1) * block.outer.weight.square().sum(0)).detach()


def _largest(use: Tensor, n: int) -> Tensor:
    """The places of the n largest, in order."""
    return use.topk(n).indices.sort().values


def _cut(name: str, tensor: Tensor, kept: _Kept, spec: EncoderSpec) -> Tensor:
    """The part of a tensor that stays."""
    columns = kept.columns
    part, kind = name.rsplit(".", 1)
    if part == "relative_bias.by_bucket":
        return tensor[:, kept.heads[0]]
    if part.startswith("embeddings."):
        if part == "embeddings.projection":
            return tensor[columns]
        return tensor if spec.has_projection else tensor[..., columns]
    number, _, inside = part.removeprefix("blocks.").partition(".")
    heads, units = kept.heads[int(number)], kept.units[int(number)]
    n_heads, is_matrix = spec.n_attention_heads, kind == "weight"
    match inside:
        case "attention.qkv":
            rows = tensor.unflatten(0, (3, n_heads, -1))[:, heads].flatten(0, 2)
            return rows[:, columns] if is_matrix else rows
        case "attention.output":
            rows = tensor[columns]
            return rows.unflatten(1, (n_heads, -1))[:, heads].flatten(1) if is_matrix else rows
        case "attention_norm" | "outer_norm":
            return tensor[columns]
        case "inner":
            return tensor[units][:, columns] if is_matrix else tensor[units]
        case "outer":
            return tensor[columns][:, units] if is_matrix else tensor[columns]
    raise UserError(
        f"A {spec.family} encoder with {name} cannot be made narrower. Choose fewer layers, or"
        " another encoder."
    )
