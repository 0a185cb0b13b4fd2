"""What stands between two products, in one pass over memory. No gradients: for inference.

    embed        h = norm(piece + position + segment)
    add_and_norm h = norm(x + residual)

Both are the norm of a sum of rows, each from a table of its own. Everything in float32 on the chip,
whatever the tensors are.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor, nn

ROWS = 4
"""Rows a program; one warp for each."""

Rows = tuple[Tensor, Tensor | None]
"""A table, and which of its rows are meant, −1: none; None: the rows as they lie."""


def add_and_norm(
    x: Tensor,
    residual: Tensor,
    norm: nn.LayerNorm,
    places: Tensor | None = None,
    *,
    both_at_places: bool = False,
) -> Tensor:
    """norm(x + residual), or of the residual's rows at `places`, or of both's. x: (piece, width)"""
    n_rows = len(x) if places is None else len(places)
    at_x = places if both_at_places else None
    return _norm_of_sum(n_rows, norm, (x, at_x), (residual, places))


def embed(
    pieces: Tensor,
    positions: Tensor,
    segments: Tensor,
    *,
    tables: tuple[nn.Embedding, nn.Embedding, nn.Embedding | None],
    norm: nn.LayerNorm,
    first_position: int = 0,
) -> Tensor:
    """norm(piece + position + segment). → (piece, width)"""
    piece, position, segment = tables
    rows: list[Rows] = [(piece.weight, pieces), (position.weight[first_position:], positions)]
    if segment is not None:
        rows.append((segment.weight, segments))
    return _norm_of_sum(len(pieces), norm, *rows)


def _norm_of_sum(n_rows: int, norm: nn.LayerNorm, first: Rows, second: Rows, *more: Rows) -> Tensor:
    third = more[0] if more else second
    width = first[0].shape[1]
    out = first[0].new_empty(n_rows, width)
    # where there are no places the kernel is told some other tensor, which it never reads
    places = [table if at is None else at for table, at in (first, second, third)]
    norm_rows_of_sum[(triton.cdiv(n_rows, ROWS),)](
        first[0], second[0], third[0], *places, norm.weight, norm.bias, out, n_rows,
        len(third[0]) - 1, norm.eps, WIDTH=width, COLUMNS=triton.next_power_of_2(width), ROWS=ROWS,
        AT_FIRST=first[1] is not None, AT_SECOND=second[1] is not None, WITH_THIRD=bool(more),
        num_warps=ROWS,
    )  # fmt: skip
    return out


@triton.jit
def rows_at(TABLE, place, column, inside, WIDTH):
    """Rows of a table as float32, 0 where there is none."""
    at = TABLE + place.to(tl.int64)[:, None] * WIDTH + column[None, :]
    return tl.load(at, mask=inside & (place >= 0)[:, None], other=0.0).to(tl.float32)


@triton.jit
def norm_rows(x, inside, WEIGHT, BIAS, column, epsilon, WIDTH):
    """Layer norm of rows (row, column) that are 0 outside their width."""
    mean = tl.sum(x, 1) / WIDTH
    centred = tl.where(inside, x - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, 1) / WIDTH
    weight = tl.load(WEIGHT + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    bias = tl.load(BIAS + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    scaled = centred * (1.0 / tl.sqrt(variance + epsilon))[:, None]
    return scaled * weight[None, :] + bias[None, :]


@triton.jit
def norm_rows_of_sum(
    FIRST, SECOND, THIRD, FIRST_PLACES, SECOND_PLACES, THIRD_PLACES, WEIGHT, BIAS, OUT, n_rows,
    last_third, epsilon, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
    AT_FIRST: tl.constexpr, AT_SECOND: tl.constexpr, WITH_THIRD: tl.constexpr,
):  # fmt: skip
    """Programs: ROWS rows each."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    live = row < n_rows
    inside = live[:, None] & (column < WIDTH)[None, :]
    place = tl.load(FIRST_PLACES + row, mask=live, other=-1) if AT_FIRST else row
    x = rows_at(FIRST, place, column, inside, WIDTH)
    place = tl.load(SECOND_PLACES + row, mask=live, other=-1) if AT_SECOND else row
    x += rows_at(SECOND, place, column, inside, WIDTH)
    if WITH_THIRD:
        # RoBERTa has a single segment, whatever the tokenizer says of a pair
        place = tl.minimum(tl.load(THIRD_PLACES + row, mask=live, other=-1), last_third)
        x += rows_at(THIRD, place, column, inside, WIDTH)
    normed = norm_rows(x, inside, WEIGHT, BIAS, column, epsilon, WIDTH)
    to = OUT + row.to(tl.int64)[:, None] * WIDTH + column[None, :]
    tl.store(to, normed.to(OUT.dtype.element_ty), mask=inside)
