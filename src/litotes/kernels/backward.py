"""The gradient of attention over packed texts: launches both kernels, shape by shape, and the walks
of long texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from litotes.encoder.attention.rule import LONGEST, RowRule
from litotes.kernels.backward_kernel import key_value_gradient, query_gradient
from litotes.kernels.backward_walk import walk_back, walks_back
from litotes.kernels.forward import Packed, bias_tensors, or_nothing, step_of, whole_width
from litotes.kernels.tiles import Shape, Tiles
from litotes.kernels.towards import Remembered, Towards

MOST_PAIRS = 2**13
"""Pairs of a query and a key in a program of whole rows: weights, and what pulls on them, lie in
registers together. Beyond that they no longer fit (ptxas, sm_90); with more than these two, half.
"""

WIDE_BLOCK = 2**14
"""Bytes of a block of keys: two sums of its shape lie in registers."""


def pull_back(
    to_mixed: Tensor,
    packed: Packed,
    rule: RowRule,
    remembered: Remembered,
    towards: Towards,
    *,
    key_tiles: Sequence[Tiles],
) -> Tensor | None:
    """Writes the gradients to `towards`; gives that of the bias, (bucket, attention_head), if any.

    to_mixed: (piece, attention_head, head_width), contiguous. key_tiles: tiles of the keys.
    """
    means = torch.zeros_like(remembered.row_numbers[0])  # (attention_head, piece)
    # tiles of different shapes have different texts: the order of the launches does not matter
    by_bucket = [
        _pull_queries(tiles, to_mixed, packed, rule, remembered, towards, means)
        for tiles in packed.tiles
        if len(tiles.numbers) and not walks_back(tiles.shape, packed)
    ]
    for tiles in key_tiles:
        if len(tiles.numbers) and not walks_back(tiles.shape, packed):
            _pull_keys(tiles, to_mixed, packed, rule, remembered, towards, means)
    walk_back(to_mixed, packed, rule, remembered, towards)
    if packed.bias is None:
        return None
    nothing = torch.zeros_like(packed.bias.by_bucket)
    return sum((some.sum(0).T for some in by_bucket if some is not None), nothing)


def _pull_queries(
    tiles: Tiles,
    to_mixed: Tensor,
    packed: Packed,
    rule: RowRule,
    remembered: Remembered,
    towards: Towards,
    means: Tensor,
) -> Tensor | None:
    """Gives each program's part of the bias's gradient. (program, attention_head, bucket)"""
    query, key, value, bias = packed.query, packed.key, packed.value, packed.bias
    n_queries, n_heads, head_width = query.shape
    shape = tiles.shape
    n_rows = _rows_of(shape, packed, rule)
    n_programs = len(tiles.numbers) * (shape.rows // n_rows)
    nothing, is_single = packed.key_bounds, query.dtype == torch.float32
    n_buckets = 1 if bias is None else len(bias.by_bucket)
    to_bias = None if bias is None else means.new_zeros(n_programs, n_heads, n_buckets)
    query_gradient[(n_programs, n_heads)](
        query, key, value, to_mixed, packed.query_bounds, packed.key_bounds, tiles.numbers,
        *_pointers(packed, rule, remembered),
        towards.query, means, or_nothing(towards.alpha, nothing), or_nothing(to_bias, nothing),
        query.stride(0), key.stride(0), value.stride(0), towards.query.stride(0), n_queries,
        head_width**-0.5, remembered.dropout,
        N_HEADS=n_heads, HEAD_WIDTH=head_width,
        STEP=step_of(head_width, shape.span, query.element_size()),
        TILE_ROWS=shape.rows, ROWS=n_rows, SPAN=shape.span, FARTHEST=LONGEST,
        SHIFT=rule.block - 1, N_BUCKETS=n_buckets, RULE=rule.name, CHOOSES=rule.chooses,
        PRECISE=is_single, WITH_ALPHA=towards.alpha is not None,
        WITH_BIAS=bias is not None, WITH_ALIVE=packed.alive is not None,
        WITH_DROPOUT=remembered.dropout > 0,
        num_warps=8 if shape.span >= 128 or is_single else shape.n_warps,
    )  # fmt: skip
    return to_bias


def _pull_keys(
    tiles: Tiles,
    to_mixed: Tensor,
    packed: Packed,
    rule: RowRule,
    remembered: Remembered,
    towards: Towards,
    means: Tensor,
) -> None:
    query, key, value = packed.query, packed.key, packed.value
    n_queries, n_heads, head_width = query.shape
    shape = tiles.shape
    width = whole_width(head_width)
    n_keys = _block_of_keys(shape, width, query.element_size())
    has_more = packed.bias is not None or remembered.dropout > 0
    n_programs = len(tiles.numbers) * -(-shape.rows // n_keys)
    is_single = query.dtype == torch.float32
    key_value_gradient[(n_programs, n_heads)](
        query, key, value, to_mixed, packed.query_bounds, packed.key_bounds, tiles.numbers,
        *_pointers(packed, rule, remembered),
        means, towards.key, towards.value,
        query.stride(0), key.stride(0), value.stride(0),
        towards.key.stride(0), towards.value.stride(0), n_queries,
        head_width**-0.5, remembered.dropout,
        N_HEADS=n_heads, HEAD_WIDTH=head_width, WIDTH=width,
        TILE_ROWS=shape.rows, KEYS=n_keys, QUERIES=n_keys, FARTHEST=LONGEST,
        RULE=rule.name, CHOOSES=rule.chooses, PRECISE=is_single,
        WITH_BIAS=packed.bias is not None, WITH_ALIVE=packed.alive is not None,
        WITH_DROPOUT=remembered.dropout > 0,
        num_warps=8 if n_keys * width > 2**12 or has_more or is_single else 4,
        num_stages=1 if is_single else 2,
    )  # fmt: skip


def _rows_of(shape: Shape, packed: Packed, rule: RowRule) -> int:
    """How many of a tile's queries a program does: a power of 2, as all of these are."""
    is_single = packed.query.dtype == torch.float32
    has_more = rule.name == "powers" or packed.bias is not None or is_single
    return min(shape.rows, max(16, MOST_PAIRS // (2 if has_more else 1) // shape.span))


def _block_of_keys(shape: Shape, width: int, bytes_each: int) -> int:
    """How many keys a program does, and queries at a time."""
    return min(128 // bytes_each, shape.span, max(16, WIDE_BLOCK // (width * bytes_each)))


def _pointers(packed: Packed, rule: RowRule, remembered: Remembered) -> list[Tensor]:
    """What both kernels read besides the products' sides."""
    nothing = packed.key_bounds
    return [
        or_nothing(rule.alpha, nothing),
        *bias_tensors(packed.bias, nothing),
        or_nothing(packed.alive, nothing),
        or_nothing(remembered.seed, nothing),
        remembered.row_numbers,
        or_nothing(remembered.chosen, nothing),
    ]
