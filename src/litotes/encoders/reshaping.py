"""The same weights in another encoder: with other seams of attention, or with fewer attention heads
for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoders.encoder import Encoder


def rebuild_encoder(encoder: Encoder, **choices: Any) -> Encoder:
    """A copy with other choices for the seams (as `EncoderSpec` names them); what a new seam learns
    starts afresh.
    """
    fresh = Encoder(replace(encoder.spec, **choices)).to(encoder.device)
    known = {
        name: tensor for name, tensor in encoder.state_dict().items() if name in fresh.state_dict()
    }
    fresh.load_state_dict(known, strict=False)
    return fresh.train(encoder.training)


def keep_heads(encoder: Encoder, heads_kept: Sequence[Sequence[int]]) -> Encoder:
    """A copy whose blocks have these attention heads alone, by their first numbers: the others
    leave the projections for good.

    The output is that of the whole encoder with the other heads' outputs set to zero.
    """
    for block, kept in enumerate(heads_kept):
        if not kept or not set(kept) <= set(encoder.spec.heads_of(block)):
            raise UserError(
                f"Block {block} has the attention heads {list(encoder.spec.heads_of(block))}; it"
                f" cannot keep {list(kept)}."
            )
    if len(heads_kept) != encoder.spec.n_blocks:
        raise UserError(
            f"heads_kept names the heads of {len(heads_kept)} blocks, the encoder has"
            f" {encoder.spec.n_blocks}."
        )
    kept_lists = tuple(tuple(sorted(kept)) for kept in heads_kept)
    small = Encoder(replace(encoder.spec, heads_kept=kept_lists)).to(encoder.device)
    state = encoder.state_dict()
    for block, kept in enumerate(kept_lists):
        before = list(encoder.spec.heads_of(block))
        places = torch.tensor([before.index(head) for head in kept], device=encoder.device)
        for name in [name for name in state if name.startswith(f"blocks.{block}.attention.")]:
            state[name] = _of_heads(
                name.rpartition("attention.")[2], state[name], places, len(before)
            )
    small.load_state_dict(state)
    return small.train(encoder.training)


def _of_heads(name: str, tensor: Tensor, places: Tensor, n_heads: int) -> Tensor:
    """The part of a tensor of attention that belongs to the heads at these places."""
    if name.startswith("qkv."):
        return tensor.unflatten(0, (3, n_heads, -1))[:, places].flatten(0, 2)
    if name == "output.weight":
        return tensor.unflatten(1, (n_heads, -1))[:, places].flatten(1)
    # a number per attention head
    if name.startswith("weighting.") and tensor.ndim and tensor.shape[0] == n_heads:
        return tensor[places]
    return tensor
