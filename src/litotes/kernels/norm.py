"""Launches of norm_kernel.py. No gradients: for inference."""

from __future__ import annotations

import triton
from torch import Tensor, nn

from litotes.kernels.norm_kernel import add_and_norm_rows, embed_rows

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
