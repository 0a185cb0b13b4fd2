"""Who computes a batch: the kernels on a GPU, or else the encoder itself, which is the definition.

LITOTES_KERNELS=off switches the kernels off; on is the default.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import TORCH, Encoding
from litotes.encoder.walk import Observer

SWITCH = "LITOTES_KERNELS"


def encode(
    encoder: Encoder, batch: Batch, *, firsts_only: bool = False, observer: Observer | None = None
) -> Encoding:
    """Encodes a batch; for an observer by torch, as it sees more than the kernels write down."""
    if observer is None and uses_kernels(encoder):
        return encode_on_device(encoder, batch, firsts_only=firsts_only)
    return encoder(batch, firsts_only=firsts_only, observer=observer)


def uses_kernels(encoder: Encoder) -> bool:
    """Tells whether batches of this encoder go through the kernels on its current device."""
    if encoder.recomputes or not kernels_wanted(encoder.device):
        return False
    from litotes.kernels.triton_operations import has_kernels  # imports Triton

    return has_kernels(encoder)


def kernels_wanted(device: torch.device) -> bool:
    """Tells whether to use kernels on a device, for encoders that they know."""
    if device.type != "cuda":
        return False
    wanted = os.environ.get(SWITCH) or "on"
    if wanted not in ("on", "off"):
        raise UserError(f"{SWITCH}={wanted!r:.60} is not known: write on or off.")
    return wanted == "on" and find_spec("triton") is not None


def encode_on_device(encoder: Encoder, batch: Batch, *, firsts_only: bool) -> Encoding:
    """The same by kernels, with gradients, under autocast or not."""
    from litotes.kernels.route import RoutePlan
    from litotes.kernels.triton_operations import TritonOperations, route_options, walk_route

    layout = batch.layout
    trains = torch.is_grad_enabled()
    options = route_options(encoder, firsts_only=firsts_only, trains=trains)
    plan = RoutePlan.for_texts(options, layout.lengths)
    on_cuda = layout.device.type == "cuda"
    sent = torch.empty(plan.n_sent, dtype=torch.int32, pin_memory=on_cuda)
    lengths = np.array(layout.lengths, dtype=np.int32)
    # the pieces themselves are on the device already
    plan.write(np.zeros(layout.n_pieces, dtype=np.int32), None, lengths, sent.numpy())
    block = torch.empty(plan.n_numbers, dtype=torch.int32, device=layout.device)
    block[: plan.n_sent].copy_(sent, non_blocking=True)
    route = replace(plan.read(block), pieces=batch.pieces, segments=batch.segments)
    walked = walk_route(
        encoder, TritonOperations(route, fused=False, seeds=attention_seeds(encoder))
    )
    if firsts_only:
        firsts, places = TORCH.firsts(layout)
        return Encoding(walked.hidden, firsts, places)
    if encoder.pruning.restore and len(route.stages) > 1:
        return Encoding(walked.hidden, layout, layout.positions)
    left = options.n_left(lengths)[-1].tolist()
    return Encoding(walked.hidden, Layout.of(left, layout.device), walked.origin.long())


def attention_seeds(encoder: Encoder) -> Tensor | None:
    """Draws the seed of dropout in the attention of each layer, by torch on the encoder's device;
    None where nothing is dropped. (layer,)
    """
    if not encoder.training or not encoder.spec.attention_dropout:
        return None
    seed = torch.randint(2**62, (1,), device=encoder.device)
    return seed + torch.arange(len(encoder.spec.walk), device=seed.device)
