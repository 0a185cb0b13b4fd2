"""The same weights in another encoder: with other seams of attention, or with fewer attention heads
for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.encoder import Encoder
from litotes.encoder.spec import EncoderSpec


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
