"""What the queries of a tile gave each key: the sums of the weights' columns."""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.row_weights import INTERPRETED


@triton.jit
def column_sums(weights, times, ROWS: tl.constexpr, PRECISE: tl.constexpr):
    """Of the weights, each row `times` its own number. (row, key): rows are all the same.

    In half precision by a product with such rows: threads hold rows of weights, and to add columns
    they would have to pass all numbers on to each other.
    """
    if PRECISE:
        sums = tl.sum(weights * times[:, None], 0)[None, :]
    else:
        rows = tl.broadcast_to(times.to(tl.float16)[None, :], [16, ROWS])  # products have 16
        sums = tl.dot(rows, weights.to(tl.float16))
    return sums


@triton.jit
def sum_of_squares(value):
    """Of each key's value. (key,)"""
    value = value.to(tl.float32)
    return tl.sum(value * value, 1)


@triton.jit
def put(to, numbers, mask):
    """Stores numbers from where they lie. `tl.store` would first hand them from thread to thread,
    so that neighbours write neighbours, which takes longer than so small a store itself.
    """
    if INTERPRETED:
        tl.store(to, numbers, mask=mask)
    else:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.s32 p, $3, 0; @p st.global.f32 [$1], $2; mov.b32 $0, $3; }",
            "=r,l,f,r", [to.to(tl.int64), numbers, mask.to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def store_received(
    to_received, weights, times, squares, key_live,
    ROWS: tl.constexpr, IMPORTANCE: tl.constexpr, PRECISE: tl.constexpr,
):  # fmt: skip
    """What the tile's queries gave each key; "value": times its value's length.

    to_received: a pointer for each key. times: what a row's weights have to be multiplied by, 0 for
    rows of nobody. (query,) squares: of the values' lengths. (key,)
    """
    sums = column_sums(weights, times, ROWS, PRECISE)
    if IMPORTANCE == "value":
        sums *= tl.sqrt(squares)[None, :]
    is_first = (tl.arange(0, sums.shape[0]) == 0)[:, None]
    to = tl.broadcast_to(to_received[None, :], sums.shape)
    mask = is_first & key_live[None, :]
    if PRECISE:
        tl.store(to, sums, mask=mask)
    else:
        put(to, sums, mask)
