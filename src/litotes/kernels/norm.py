"""What stands between two products, in one pass over memory. No gradients: for inference."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor, nn

ROWS = 4
"""Rows a program; one warp for each."""


def add_and_norm(
    x: Tensor,
    residual: Tensor,
    norm: nn.LayerNorm,
    places: Tensor | None = None,
    *,
    both_at_places: bool = False,
) -> Tensor:
    """norm(x + residual), or of the residual's rows at `places`, or of both's. x: (piece, width)"""
    width = x.shape[1]
    n_rows = len(x) if places is None else len(places)
    out = x.new_empty(n_rows, width)
    add_and_norm_rows[(triton.cdiv(n_rows, ROWS),)](
        x, residual, x if places is None else places, norm.weight, norm.bias, out, n_rows, norm.eps,
        WIDTH=width, COLUMNS=triton.next_power_of_2(width), ROWS=ROWS,
        WITH_PLACES=places is not None,
        BOTH_AT_PLACES=both_at_places,
        num_warps=ROWS,
    )  # fmt: skip
    return out


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
    n_rows, width = len(pieces), piece.embedding_dim
    out = piece.weight.new_empty(n_rows, width)
    embed_rows[(triton.cdiv(n_rows, ROWS),)](
        pieces, positions, segments, piece.weight, position.weight,
        piece.weight if segment is None else segment.weight, norm.weight, norm.bias, out,
        n_rows, first_position, 0 if segment is None else segment.num_embeddings - 1, norm.eps,
        WIDTH=width, COLUMNS=triton.next_power_of_2(width), ROWS=ROWS,
        WITH_SEGMENT=segment is not None, num_warps=ROWS,
    )  # fmt: skip
    return out


# What stands between two products, each in one pass over memory.
#
#     embed        h = norm(piece + position + segment)
#     add_and_norm h = norm(x + residual)
#
# Everything in float32 on the chip, whatever the tensors are.


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
def add_and_norm_rows(
    X, RESIDUAL, PLACES, WEIGHT, BIAS, OUT, n_rows, epsilon,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, WITH_PLACES: tl.constexpr,
    BOTH_AT_PLACES: tl.constexpr,
):  # fmt: skip
    """Programs: ROWS rows each. PLACES: the rows of RESIDUAL that go on, −1: none.

    BOTH_AT_PLACES: the rows of X lie there too.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < n_rows)[:, None] & (column < WIDTH)[None, :]
    place = row
    there = inside
    if WITH_PLACES:
        place = tl.load(PLACES + row, mask=row < n_rows, other=-1)
        there = inside & (place >= 0)[:, None]
    here = row.to(tl.int64)[:, None] * WIDTH + column[None, :]
    other = place.to(tl.int64)[:, None] * WIDTH + column[None, :]
    if BOTH_AT_PLACES:
        x = tl.load(X + other, mask=there, other=0.0).to(tl.float32)
    else:
        x = tl.load(X + here, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(RESIDUAL + other, mask=there, other=0.0).to(tl.float32)
    normed = norm_rows(x, inside, WEIGHT, BIAS, column, epsilon, WIDTH)
    tl.store(OUT + here, normed.to(OUT.dtype.element_ty), mask=inside)


@triton.jit
def embed_rows(
    PIECES, POSITIONS, SEGMENTS, PIECE, POSITION, SEGMENT, WEIGHT, BIAS, OUT,
    n_rows, first_position, last_segment, epsilon,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, WITH_SEGMENT: tl.constexpr,
):  # fmt: skip
    """Programs: ROWS pieces each."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    live = row < n_rows
    inside = live[:, None] & (column < WIDTH)[None, :]
    piece = tl.load(PIECES + row, mask=live, other=0).to(tl.int64)
    position = tl.load(POSITIONS + row, mask=live, other=0).to(tl.int64) + first_position
    x = tl.load(PIECE + piece[:, None] * WIDTH + column[None, :], mask=inside, other=0.0).to(
        tl.float32
    )
    x += tl.load(POSITION + position[:, None] * WIDTH + column[None, :], mask=inside, other=0.0).to(
        tl.float32
    )
    if WITH_SEGMENT:
        # RoBERTa has a single segment, whatever the tokenizer says of a pair
        segment = tl.minimum(tl.load(SEGMENTS + row, mask=live, other=0), last_segment).to(tl.int64)
        x += tl.load(
            SEGMENT + segment[:, None] * WIDTH + column[None, :], mask=inside, other=0.0
        ).to(tl.float32)
    normed = norm_rows(x, inside, WEIGHT, BIAS, column, epsilon, WIDTH)
    here = row.to(tl.int64)[:, None] * WIDTH + column[None, :]
    tl.store(OUT + here, normed.to(OUT.dtype.element_ty), mask=inside)
