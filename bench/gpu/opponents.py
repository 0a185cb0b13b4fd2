"""What our lines are measured against: Hugging Face padded, eager and compiled, and the least one
can do without padding, torch's own attention over packed texts.

Opponents find their batches padded or packed on the device already; ours begin with lists of piece
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench import hugging_face
from bench.batching import Logits, split
from bench.gpu.models import copy_to
from litotes.encoder.encoder import Block, Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import TORCH
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import Encoding, second_half
from litotes.model.checkpoint import Model

AttendPacked = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys and values (piece, attention_head, head_width) to what each piece gathers."""
MakeAttention = Callable[[Layout], AttendPacked]

COMPILED_STEP = 64
"""Pieces to which a compiled opponent's batches are filled up: every new length is compiled."""
MOST_COMPILED = 64
"""Lengths and sizes of batches that may be compiled; torch's own limit of 8 would silently go on
uncompiled.
"""


def padded(
    model: Model,
    pieces: Sequence[Pieces],
    *,
    size: int,
    device: torch.device,
    dtype: torch.dtype,
    is_compiled: bool = False,
) -> Callable[[object], Logits]:
    """Our weights in `transformers` with sdpa, in batches of `size` texts, in their order."""
    network = hugging_face.with_same_weights(model).to(device, dtype)
    step = COMPILED_STEP if is_compiled else 1
    batches = []
    for part in split(pieces, size):
        inputs = hugging_face.padded(part, model.classifier.encoder.spec.padding_piece)
        filled = {name: fill_up(tensor, step) for name, tensor in inputs.items()}
        batches.append({name: tensor.to(device) for name, tensor in filled.items()})
    run: Callable[..., Tensor] = network
    if is_compiled:
        run = _compile(network)

    def act(_: object) -> Logits:
        with torch.inference_mode():
            return to_host([run(**batch) for batch in batches])

    return act


def _compile(network: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """With a limit of its own: ours has to live with torch's."""
    compiled = torch.compile(network, dynamic=False)

    def run(**batch: Tensor) -> Tensor:
        with torch._dynamo.config.patch(recompile_limit=MOST_COMPILED):
            return compiled(**batch)

    return run


def fill_up(rows: Tensor, step: int) -> Tensor:
    """Rows (text, piece) with zeros at the end, up to a multiple of `step` pieces.

    0 is no live piece, and as a piece's number it is as good as any other there.
    """
    return functional.pad(rows, (0, -rows.shape[1] % step))


def naive_packed(
    model: Model,
    pieces: Sequence[Pieces],
    *,
    size: int,
    device: torch.device,
    dtype: torch.dtype,
    make_attention: MakeAttention | None = None,
) -> Callable[[object], Logits]:
    """Our weights over packed texts, operation by operation; `varlen_attn` unless another attention
    is given.
    """
    make_attention = make_attention or varlen_attention
    classifier = copy_to(model, device, dtype).classifier
    batches = []
    for part in split(pieces, size):
        batch = pack(part, device=device)
        batches.append((batch, make_attention(batch.layout)))

    def act(_: object) -> Logits:
        answers = []
        with torch.inference_mode():
            for batch, attend in batches:
                hidden = packed_hidden(classifier.encoder, batch, attend)
                encoding = Encoding(hidden, batch.layout, batch.layout.positions)
                answers.append(torch.cat(list(classifier.read(encoding).values()), dim=1))
            return to_host(answers)

    return act


def packed_hidden(encoder: Encoder, batch: Batch, attend: AttendPacked) -> Tensor:
    """The hidden states of all pieces, (piece, width), without any pruning."""
    hidden = encoder.embeddings(batch)
    for number in encoder.spec.walk:
        block = encoder.blocks[number]
        assert isinstance(block, Block)
        qkv = block.attention.qkv(hidden).unflatten(-1, (3, block.attention.n_heads, -1))
        hidden = second_half(TORCH, block, hidden, attend(*qkv.unbind(1)).flatten(1))
    return hidden


def varlen_attention(layout: Layout) -> AttendPacked:
    """Attention by torch itself, for texts of these lengths."""
    from torch.nn.attention.varlen import varlen_attn

    bounds = functional.pad(layout.counts.cumsum(0), (1, 0)).int()  # (text + 1,)
    longest = layout.longest

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        mixed = varlen_attn(query, key, value, bounds, bounds, longest, longest)
        assert isinstance(mixed, Tensor)
        return mixed

    return attend


def to_host(parts: Sequence[Tensor]) -> Logits:
    """Answers of all batches, fetched once they are all under way. (text, class)"""
    return torch.cat(list(parts)).float().cpu().numpy().astype(np.float32, copy=False)
