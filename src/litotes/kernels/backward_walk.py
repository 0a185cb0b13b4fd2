"""Launches both walks of the gradient, each for all long texts at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from litotes.encoder.attention.rule import LONGEST, RowRule
from litotes.kernels.backward_walk_kernel import walk_for_keys, walk_for_queries
from litotes.kernels.forward import Packed, or_nothing, whole_width
from litotes.kernels.tiles import Shape
from litotes.kernels.towards import Remembered, Towards

WALKS_BEYOND = 64
"""Texts of more pieces are walked, shorter ones lie on the chip whole. LONGEST: nobody walks."""

WIDEST = 128
"""Of an attention head: two sums of so many columns fit the registers beside all else."""

EVEN = 128
"""Each text's rows are filled up to a multiple of it: no block of queries is larger."""


@dataclass(frozen=True)
class Blocks:
    """held: rows that a program has all the time. step: rows of the other side that come by.

    most_registers: of a thread; 168 are the most for three programs of 4 warps at a time.
    """

    held: int
    step: int
    n_warps: int
    n_stages: int
    most_registers: int | None = None


@dataclass(frozen=True)
class _Handed:
    """From one walk to the other (`walk_for_queries` says what)."""

    lines: Tensor
    turned: Tensor | None


BY_QUERY = Blocks(64, 32, 4, 3, 168)
BY_KEY = Blocks(64, 64, 4, 3, 168)
"""For attention heads of up to 64 columns: the quickest of six and of seven on an H200."""


def walks_back(shape: Shape, packed: Packed) -> bool:
    """Whether the gradient of this shape's texts is walked. A bias is not: its own gradient adds
    up by bucket what each pair pulls, and that is known after a walk only.
    """
    return (
        shape.span > WALKS_BEYOND
        and packed.query.dtype != torch.float32
        and packed.query.shape[-1] <= WIDEST
        and packed.bias is None
        and packed.query_bounds is packed.key_bounds
    )


def walk_back(
    to_mixed: Tensor, packed: Packed, rule: RowRule, remembered: Remembered, towards: Towards
) -> None:
    """Writes the gradients of all texts whose shape `walks_back`."""
    spans: dict[bool, list[int]] = {True: [0], False: [0]}
    for tiles in packed.tiles:
        if len(tiles.numbers):
            spans[walks_back(tiles.shape, packed)].append(tiles.shape.span)
    longest, n_shorter = max(spans[True]), max(spans[False])
    if longest == 0:
        return
    n_pieces, n_heads, _ = packed.query.shape
    n_lines = (n_pieces // EVEN + len(packed.key_bounds)) * EVEN
    handed = _Handed(
        lines=remembered.row_numbers.new_zeros(n_heads, 3, n_lines),
        turned=None
        if remembered.chosen is None
        else remembered.chosen.new_empty(n_heads, LONGEST // 32, n_lines),
    )
    _walk_for_queries(to_mixed, packed, rule, remembered, towards, handed, longest, n_shorter)
    _walk_for_keys(to_mixed, packed, rule, remembered, towards, handed, longest, n_shorter)


def _walk_for_queries(
    to_mixed: Tensor,
    packed: Packed,
    rule: RowRule,
    remembered: Remembered,
    towards: Towards,
    handed: _Handed,
    longest: int,
    n_shorter: int,
) -> None:
    query, key, value, bounds = packed.query, packed.key, packed.value, packed.key_bounds
    n_queries, n_heads, head_width = query.shape
    blocks = _fitting(BY_QUERY, head_width, remembered.dropout)
    n_blocks = -(-longest // blocks.held)
    walk_for_queries[((len(bounds) - 1) * n_blocks, n_heads)](
        query, key, value, remembered.mixed, to_mixed, bounds, or_nothing(rule.alpha, bounds),
        or_nothing(packed.alive, bounds), or_nothing(remembered.seed, bounds),
        remembered.row_numbers, or_nothing(remembered.chosen, bounds),
        towards.query, handed.lines, or_nothing(handed.turned, bounds),
        or_nothing(towards.alpha, bounds),
        query.stride(0), key.stride(0), value.stride(0), towards.query.stride(0), n_queries,
        handed.lines.shape[-1], n_blocks, n_shorter, head_width**-0.5, remembered.dropout,
        N_HEADS=n_heads, HEAD_WIDTH=head_width, WIDTH=whole_width(head_width),
        ROWS=blocks.held, KEYS=blocks.step, EVEN=EVEN, FARTHEST=LONGEST, RULE=rule.name,
        CHOOSES=rule.chooses, WITH_ALPHA=towards.alpha is not None,
        WITH_ALIVE=packed.alive is not None, WITH_DROPOUT=remembered.dropout > 0,
        num_warps=blocks.n_warps, num_stages=blocks.n_stages, maxnreg=blocks.most_registers,
    )  # fmt: skip


def _walk_for_keys(
    to_mixed: Tensor,
    packed: Packed,
    rule: RowRule,
    remembered: Remembered,
    towards: Towards,
    handed: _Handed,
    longest: int,
    n_shorter: int,
) -> None:
    query, key, value, bounds = packed.query, packed.key, packed.value, packed.key_bounds
    n_heads, head_width = query.shape[1:]
    blocks = _fitting(BY_KEY, head_width, remembered.dropout)
    n_blocks = -(-longest // blocks.held)
    walk_for_keys[((len(bounds) - 1) * n_blocks, n_heads)](
        query, key, value, to_mixed, bounds, or_nothing(rule.alpha, bounds),
        or_nothing(packed.alive, bounds), or_nothing(remembered.seed, bounds),
        handed.lines, or_nothing(handed.turned, bounds), towards.key, towards.value,
        query.stride(0), key.stride(0), value.stride(0),
        towards.key.stride(0), towards.value.stride(0),
        handed.lines.shape[-1], n_blocks, n_shorter, head_width**-0.5, remembered.dropout,
        N_HEADS=n_heads, HEAD_WIDTH=head_width, WIDTH=whole_width(head_width),
        KEYS=blocks.held, QUERIES=blocks.step, EVEN=EVEN, FARTHEST=LONGEST, RULE=rule.name,
        CHOOSES=rule.chooses, WITH_ALIVE=packed.alive is not None,
        WITH_DROPOUT=remembered.dropout > 0,
        num_warps=blocks.n_warps, num_stages=blocks.n_stages, maxnreg=blocks.most_registers,
    )  # fmt: skip


def _fitting(blocks: Blocks, head_width: int, dropout: float) -> Blocks:
    """Twice the columns leave room for half the pairs, and they, or random numbers, need all
    registers.
    """
    if head_width > 64:
        blocks = replace(blocks, step=max(32, blocks.step // 2))
    if head_width > 64 or dropout > 0:
        blocks = replace(blocks, most_registers=None)
    return blocks
