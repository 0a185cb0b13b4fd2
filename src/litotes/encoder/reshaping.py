"""The same weights in another encoder: with other seams of attention, with fewer attention heads or
layers for good, or narrower.

What stays of a weight follows from what its axes count (`AXES`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.encoder import Block, Encoder
from litotes.encoder.families import EncoderSpec

AXES = {
    "attention.qkv": ("qkv", "column"),
    "attention.output": ("column", "head"),
    "attention.disentangled.key": ("head", "column"),
    "attention.disentangled.query": ("head", "column"),
    "attention_norm": ("column",),
    "outer_norm": ("column",),
    "inner": ("unit", "column"),
    "outer": ("column", "unit"),
}
"""Each axis of a block's weights; an offset has the first alone. qkv: three times the heads."""

Places = Mapping[str, Tensor]
"""What stays, by what an axis counts: the places along it, in order."""


def rebuild_encoder(encoder: Encoder, **choices: Any) -> Encoder:
    """A copy with other choices for the seams (as `EncoderSpec` names them); the parameters of a
    new seam start afresh.
    """
    return _refill(encoder, encoder.state_dict(), **choices)


def _refill(encoder: Encoder, state: Mapping[str, Tensor], **choices: Any) -> Encoder:
    """An encoder of the same kind but for some choices, with what it knows of these weights."""
    fresh = Encoder(replace(encoder.spec, **choices)).to(encoder.device)
    fresh.load_state_dict(
        {name: state[name] for name in fresh.state_dict() if name in state}, strict=False
    )
    return fresh.train(encoder.training)


def _take(tensor: Tensor, axes: Sequence[str], places: Places, n_heads: int) -> Tensor:
    """The part of a tensor that stays."""
    for axis, counts in zip(range(tensor.ndim), axes, strict=False):
        chosen = places.get("head" if counts == "qkv" else counts)
        if chosen is None:
            continue
        if counts == "qkv":
            tensor = tensor.unflatten(0, (3, n_heads, -1))[:, chosen].flatten(0, 2)
        elif counts == "head":
            by_head = tensor.unflatten(axis, (n_heads, -1))
            tensor = by_head.index_select(axis, chosen).flatten(axis, axis + 1)
        else:
            tensor = tensor.index_select(axis, chosen)
    return tensor


def _part_of(name: str) -> tuple[int | None, str]:
    """The number of the block that a weight belongs to, if any, and its name without it."""
    head, _, rest = name.partition(".")
    number, _, part = rest.partition(".")
    return (int(number), part) if head == "blocks" else (None, name)


def keep_heads(encoder: Encoder, heads_kept: Sequence[Sequence[int]]) -> Encoder:
    """A copy whose blocks have only these attention heads, by their original numbers: the others
    leave the projections for good.

    The output is that of the whole encoder with the other heads' outputs set to zero.
    """
    spec = encoder.spec
    if len(heads_kept) != spec.n_blocks:
        raise UserError(
            f"heads_kept names the heads of {len(heads_kept)} blocks, the encoder has"
            f" {spec.n_blocks}."
        )
    state = dict(encoder.state_dict())
    for block, kept in enumerate(heads_kept):
        present = list(spec.heads_of(block))
        if not kept or not set(kept) <= set(present):
            raise UserError(
                f"Block {block} has the attention heads {present}; it cannot keep {list(kept)}."
            )
        places = [present.index(head) for head in sorted(kept)]
        chosen = {"head": torch.tensor(places, device=encoder.device)}
        for name, tensor in state.items():
            number, part = _part_of(name)
            axes = AXES.get(part.rpartition(".")[0], ())
            # a weighting's numbers, one for each attention head
            if part.startswith("attention.weighting.") and len(tensor) == len(present):
                axes = ("head",)
            if number == block:
                state[name] = _take(tensor, axes, chosen, len(present))
    return _refill(encoder, state, heads_kept=tuple(tuple(sorted(kept)) for kept in heads_kept))


def evenly_spaced(n: int, *, of: int) -> list[int]:
    """N of so many layers at equal distances, the last one among them (Sanh et al. 2019, arXiv
    1910.01108, §3, take every second).
    """
    return [-(-(number + 1) * of // n) - 1 for number in range(n)]


def layers_to_keep(spec: EncoderSpec, n: int) -> list[int]:
    """Picks layers as evenly as their kinds allow, where a layer's number says what it sees."""
    layers = evenly_spaced(n, of=spec.n_layers)
    if not (spec.norm_first or spec.window):
        return layers
    kept = [0]
    for new, wanted in enumerate(layers[1:], start=1):
        later = range(kept[-1] + 1, spec.n_layers)
        alike = [old for old in later if spec.is_local(old) == spec.is_local(new)]
        if not alike:
            raise UserError(f"Keep fewer layers than {n}: the kinds of layers do not add up.")
        kept.append(min(alike, key=lambda old: abs(old - wanted)))
    return kept


def keep_layers(encoder: Encoder, layers: Sequence[int]) -> Encoder:
    """A copy that walks only these layers; where layers share their weights, as many of them."""
    spec = encoder.spec
    if not layers or not set(layers) <= set(range(spec.n_layers)):
        raise UserError(
            f"The encoder has {spec.n_layers} layers, counted from 0; it cannot keep"
            f" {list(layers)}."
        )
    # a layer's number may say whether it sees the whole text, and that it is the first
    is_moved = any(spec.is_local(old) != spec.is_local(new) for new, old in enumerate(layers))
    if is_moved or (spec.norm_first and layers[0] != 0):
        raise UserError(
            f"Layers {list(layers)} of a {spec.family} encoder cannot stand alone: layer 0 has to"
            f" come first, and of the kept ones every {spec.global_every}. from it has to be one"
            f" that sees the whole text (0, {spec.global_every}, {2 * spec.global_every} …)."
        )
    if spec.n_layer_groups:
        return rebuild_encoder(encoder, n_layers=len(layers))
    state = {}
    for name, tensor in encoder.state_dict().items():
        block, part = _part_of(name)
        if block is None or block in layers:
            new = name if block is None else f"blocks.{list(layers).index(block)}.{part}"
            state[new] = tensor
    heads_kept = [spec.heads_kept[layer] for layer in layers] if spec.heads_kept else ()
    return _refill(encoder, state, n_layers=len(layers), heads_kept=heads_kept)


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
    _check_width(spec, width)
    choices = {
        "width": width,
        "n_attention_heads": width // spec.head_width,
        "inner_width": max(1, round(spec.inner_width * width / spec.width)),
    }
    if spec.embedding_width and not spec.has_projection:
        choices["embedding_width"] = width
    blocks = [encoder.block(number) for number in range(spec.n_blocks)]
    columns = _largest(_column_use(encoder, blocks), width)
    head_uses = [_head_use(block) for block in blocks]
    if encoder.relative_bias is not None:
        # one bias for all blocks: they must keep the same heads
        head_uses = [torch.stack([use / use.sum() for use in head_uses]).sum(0)] * len(blocks)
    kept: list[Places] = [
        {
            "column": columns,
            "head": _largest(use, choices["n_attention_heads"]),
            "unit": _largest(_unit_use(block), choices["inner_width"]),
        }
        for block, use in zip(blocks, head_uses, strict=True)
    ]
    state = {}
    for name, tensor in encoder.state_dict().items():
        number, part = _part_of(name)
        axes = _outer_axes(name, tensor, spec)
        if number is not None:
            axes = AXES.get(part.rpartition(".")[0])
        if axes is None:
            raise UserError(
                f"A {spec.family} encoder with {name} cannot be made narrower. Choose fewer layers,"
                " or another encoder."
            )
        state[name] = _take(tensor, axes, kept[number or 0], spec.n_attention_heads)
    return _refill(encoder, state, **choices)


def _outer_axes(name: str, tensor: Tensor, spec: EncoderSpec) -> Sequence[str] | None:
    """Names what the axes of a weight outside the blocks count."""
    if name.startswith("relative_bias."):
        return ("bucket", "head")
    if not name.startswith("embeddings."):
        return None
    if spec.has_projection:  # the only weight whose columns the blocks read
        return ("column",) if name.startswith("embeddings.projection.") else ()
    return ("number", "column")[-tensor.ndim :]


def _check_width(spec: EncoderSpec, width: int) -> None:
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


def _column_use(encoder: Encoder, blocks: Sequence[Block]) -> Tensor:
    """(column,)"""
    gain = torch.ones(encoder.spec.width, device=encoder.device)
    if not encoder.spec.has_projection:
        gain = encoder.embeddings.norm.weight
    use = torch.zeros_like(gain)
    for block in blocks:
        assert block.attention_norm is not None
        use = use + (gain * block.attention.qkv.weight).square().sum(0)
        use = use + (block.attention_norm.weight * block.inner.weight).square().sum(0)
        gain = block.outer_norm.weight
    return use.detach()


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
