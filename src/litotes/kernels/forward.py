"""Attention over packed texts: launches the kernel, shape by shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from litotes.encoder.attention.rule import LONGEST, RowRule
from litotes.kernels.forward_kernel import attend_tile
from litotes.kernels.pairs_kernel import attend_pairs
from litotes.kernels.tiles import PAIRED, Tiles
from litotes.kernels.walk_kernel import walk_keys

CLOSE = {torch.float32: 1.2e-7, torch.float16: 1e-6, torch.bfloat16: 1e-5}
"""What may be missing from a sum of 1 when entmax stops looking: under what the type can show."""

MOST_REGISTERS: int | None = 128
"""Of a thread that adds up what 128 keys received in half precision. With 128 of them as many
programs fit as where nobody asks, and a few numbers lie in slower memory.
"""

AMISS = {torch.float16: 4e-3, torch.bfloat16: 1.25e-2}
"""By how much the sum of a long row's powers may be amiss before its reach is looked for again with
exact sums: what then is amiss with the weights is about as much as the type cannot show.
"""

ROWS_BY_PRODUCTS = True
"""Whether sums of rows that lie as pairs are products with ones (pair_rows.py)."""

TRAINS_CENTRED = True
"""Whether rows that lie as pairs and get a gradient are rounded about their best keys: the gradient
has products that are not rounded, whose weights the row's numbers should fit.
"""

PAIRS_TOGETHER = 2
"""Pairs of blocks of keys that a walk takes at a time. Both on Hopper alone: elsewhere it is not
known how a product's result lies in the registers, or there is no room for so many keys.
"""

CHIP = 2**16
"""Bytes of keys, or of values, that lie on the chip at a time."""


@dataclass(frozen=True)
class DistanceBias:
    """MPNet's bias. buckets: by distance from −LONGEST to LONGEST. (2 × LONGEST + 1,)

    by_bucket: (bucket, attention_head), float32. origin: each piece's place in its text. (piece,)
    """

    buckets: Tensor
    by_bucket: Tensor
    origin: Tensor


@dataclass(frozen=True)
class Packed:
    """Queries, keys and values of texts laid end to end, each (piece, attention_head, head_width).

    query_bounds, key_bounds: where each text begins, and where the last one ends. (text + 1,)
    alive: the attention heads each text still uses, as bits. (text,)
    """

    query: Tensor
    key: Tensor
    value: Tensor
    query_bounds: Tensor
    key_bounds: Tensor
    tiles: Sequence[Tiles]
    bias: DistanceBias | None = None
    alive: Tensor | None = None


@dataclass(frozen=True)
class Wanted:
    """What a launch writes besides the output.

    importance: "none", "received" or "value". n_slots: tiles of the longest text.
    """

    importance: str = "none"
    head_size: bool = False
    row_numbers: bool = False
    n_slots: int = 1


@dataclass(frozen=True)
class Attended:
    """mixed: (piece, attention_head, head_width). received: (slot, attention_head, piece).

    head_size: (text, slot, attention_head). row_numbers: (3, attention_head, piece). chosen:
    (attention_head, piece, word).
    """

    mixed: Tensor
    received: Tensor | None = None
    head_size: Tensor | None = None
    row_numbers: Tensor | None = None
    chosen: Tensor | None = None


def whole_width(head_width: int) -> int:
    """An attention head's width as kernels hold it: a power of 2, as products want it."""
    return max(16, triton.next_power_of_2(head_width))


def step_of(head_width: int, span: int, bytes_each: int) -> int:
    """How much of an attention head's width is on the chip at a time."""
    step = whole_width(head_width)
    while step > 16 and step * span * bytes_each > CHIP:
        step //= 2
    return step


def attend(
    packed: Packed,
    rule: RowRule,
    *,
    wanted: Wanted = Wanted(),  # noqa: B008 - frozen
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Attended:
    """seed: where the kernels find their seed, (1,) int64, with dropout."""
    query, key = packed.query, packed.key
    n_queries, n_heads, head_width = query.shape
    n_texts = len(packed.key_bounds) - 1
    new, single = query.new_empty, torch.float32
    # a gradient may come from rows of no text: what was in memory before must not get into it
    new_mixed = query.new_zeros if wanted.row_numbers else new
    out = Attended(
        mixed=new_mixed(n_queries, n_heads, head_width),
        received=new(wanted.n_slots, n_heads, len(key), dtype=single)
        if wanted.importance != "none"
        else None,
        head_size=new(n_texts, wanted.n_slots, n_heads, dtype=single) if wanted.head_size else None,
        row_numbers=new(3, n_heads, n_queries, dtype=single) if wanted.row_numbers else None,
        chosen=new(n_heads, n_queries, LONGEST // 32, dtype=torch.int32)
        if wanted.row_numbers and rule.chooses
        else None,
    )
    for tiles in packed.tiles:
        if len(tiles.numbers):
            launch = _launch_tile
            if tiles.shape.walks:
                launch = _launch_walk if rule.name == "softmax" else _launch_pairs
            launch(packed, rule, tiles, out, wanted=wanted, dropout=dropout, seed=seed)
    return out


def _launch_tile(
    packed: Packed,
    rule: RowRule,
    tiles: Tiles,
    out: Attended,
    *,
    wanted: Wanted,
    dropout: float,
    seed: Tensor | None,
) -> None:
    query, key, value, bias = packed.query, packed.key, packed.value, packed.bias
    n_queries, n_heads, head_width = query.shape
    shape, nothing = tiles.shape, packed.key_bounds
    is_precise = query.dtype == torch.float32
    has_limit = wanted.importance != "none" and shape.span == 128 and not is_precise
    attend_tile[(len(tiles.numbers), n_heads)](
        query, key, value, out.mixed, packed.query_bounds, packed.key_bounds, tiles.numbers,
        or_nothing(rule.alpha, nothing), or_nothing(rule.kept, nothing),
        *bias_tensors(bias, nothing),
        or_nothing(packed.alive, nothing), or_nothing(seed, nothing),
        or_nothing(out.received, nothing), or_nothing(out.head_size, nothing),
        or_nothing(out.row_numbers, nothing), or_nothing(out.chosen, nothing),
        query.stride(0), key.stride(0), value.stride(0), len(key), n_queries, wanted.n_slots,
        head_width**-0.5, dropout, CLOSE[query.dtype],
        N_HEADS=n_heads, HEAD_WIDTH=head_width,
        STEP=step_of(head_width, shape.span, query.element_size()),
        ROWS=shape.rows, SPAN=shape.span, FARTHEST=LONGEST, SHIFT=rule.block - 1,
        RULE=rule.name, BLOCK=rule.block, PRECISE=is_precise,
        WITH_BIAS=bias is not None, WITH_ALIVE=packed.alive is not None,
        WITH_DROPOUT=dropout > 0, IMPORTANCE=wanted.importance,
        WITH_HEAD_SIZE=wanted.head_size, WITH_ROW_NUMBERS=wanted.row_numbers,
        num_warps=shape.n_warps, maxnreg=MOST_REGISTERS if has_limit else None,
    )  # fmt: skip


def _launch_walk(
    packed: Packed,
    rule: RowRule,
    tiles: Tiles,
    out: Attended,
    *,
    wanted: Wanted,
    dropout: float,
    seed: Tensor | None,
) -> None:
    assert rule.name == "softmax"
    query, key, value, bias = packed.query, packed.key, packed.value, packed.bias
    n_queries, n_heads, head_width = query.shape
    shape, nothing = tiles.shape, packed.key_bounds
    walk_keys[(len(tiles.numbers), n_heads)](
        query, key, value, out.mixed, packed.query_bounds, packed.key_bounds, tiles.numbers,
        *bias_tensors(bias, nothing),
        or_nothing(packed.alive, nothing), or_nothing(seed, nothing),
        or_nothing(out.received, nothing), or_nothing(out.head_size, nothing),
        or_nothing(out.row_numbers, nothing),
        query.stride(0), key.stride(0), value.stride(0), len(key), n_queries, wanted.n_slots,
        head_width**-0.5, dropout,
        N_HEADS=n_heads, HEAD_WIDTH=head_width,
        COLUMNS=whole_width(head_width),
        ROWS=shape.rows, BLOCK=shape.block, FARTHEST=LONGEST,
        PRECISE=query.dtype == torch.float32,
        WITH_BIAS=bias is not None, WITH_ALIVE=packed.alive is not None,
        WITH_DROPOUT=dropout > 0, IMPORTANCE=wanted.importance,
        WITH_HEAD_SIZE=wanted.head_size, WITH_ROW_NUMBERS=wanted.row_numbers,
        num_warps=shape.n_warps, num_stages=2,
    )  # fmt: skip


def _launch_pairs(
    packed: Packed,
    rule: RowRule,
    tiles: Tiles,
    out: Attended,
    *,
    wanted: Wanted,
    dropout: float,
    seed: Tensor | None,
) -> None:
    assert rule.name in PAIRED
    query, key, value, bias = packed.query, packed.key, packed.value, packed.bias
    n_queries, n_heads, head_width = query.shape
    shape, nothing = tiles.shape, packed.key_bounds
    attend_pairs[(len(tiles.numbers), n_heads)](
        query, key, value, out.mixed, packed.query_bounds, packed.key_bounds, tiles.numbers,
        or_nothing(rule.alpha, nothing), or_nothing(rule.kept, nothing),
        *bias_tensors(bias, nothing),
        or_nothing(packed.alive, nothing), or_nothing(seed, nothing),
        or_nothing(out.received, nothing), or_nothing(out.head_size, nothing),
        or_nothing(out.row_numbers, nothing), or_nothing(out.chosen, nothing),
        query.stride(0), key.stride(0), value.stride(0), len(key), n_queries, wanted.n_slots,
        head_width**-0.5, dropout, CLOSE[query.dtype], AMISS[query.dtype],
        N_HEADS=n_heads, HEAD_WIDTH=head_width, COLUMNS=whole_width(head_width),
        ROWS=shape.rows, PART=shape.block, FARTHEST=LONGEST, RULE=rule.name,
        WITH_BIAS=bias is not None, WITH_ALIVE=packed.alive is not None,
        WITH_DROPOUT=dropout > 0, IMPORTANCE=wanted.importance,
        WITH_HEAD_SIZE=wanted.head_size, WITH_ROW_NUMBERS=wanted.row_numbers,
        CENTRED=wanted.row_numbers and TRAINS_CENTRED,
        PRODUCTS=ROWS_BY_PRODUCTS and is_hopper(query.device),
        TOGETHER=PAIRS_TOGETHER if is_hopper(query.device) else 1,
        num_warps=shape.n_warps,
    )  # fmt: skip


def is_hopper(device: torch.device) -> bool:
    if device.type != "cuda" or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(device)[0] == 9


def bias_tensors(bias: DistanceBias | None, nothing: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What kernels read of the bias, in their order."""
    return (nothing,) * 3 if bias is None else (bias.origin, bias.buckets, bias.by_bucket)


def or_nothing(tensor: Tensor | None, nothing: Tensor) -> Tensor:
    """A tensor to point at where there is none: the kernel never reads it."""
    return nothing if tensor is None else tensor
