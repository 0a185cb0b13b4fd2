"""Moves rows of packed tensors: to where they go on, into a fused piece, back to where they
began.

Every row that is written is written by one program: nobody adds in a race.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.encoder.attention.survivors import FUSED

FUSED_PIECE = tl.constexpr(FUSED)


@triton.jit
def pointers(TENSOR, row, column, width):
    return TENSOR + row.to(tl.int64)[:, None] * width + column[None, :]


@triton.jit(do_not_specialize=["n_rows"])
def gather_kernel(
    FIRST, SECOND, FIRST_TO, SECOND_TO, SOURCES, JOINS, SHARES, n_rows, width,
    ROWS: tl.constexpr, STEP: tl.constexpr, BOTH: tl.constexpr, WITH_SHARES: tl.constexpr,
):  # fmt: skip
    """Programs: (some rows, some columns). Every row is its source's, zeros where it has none.

    WITH_SHARES: what has no source takes its share of the row it joins.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * STEP + tl.arange(0, STEP)
    source = tl.load(SOURCES + row, mask=row < n_rows, other=-1)
    share = tl.full([ROWS], 1.0, tl.float32)
    if WITH_SHARES:
        has_none = source < 0
        share = tl.load(SHARES + row, mask=has_none & (row < n_rows), other=1.0)
        joined = tl.load(JOINS + row, mask=has_none & (row < n_rows), other=-1)
        source = tl.where(has_none, joined, source)
    inside = (row < n_rows)[:, None] & (column < width)[None, :]
    found = inside & (source >= 0)[:, None]
    first = tl.load(pointers(FIRST, source, column, width), mask=found, other=0.0)
    if BOTH:
        second = tl.load(pointers(SECOND, source, column, width), mask=found, other=0.0)
    if WITH_SHARES:
        first = (first.to(tl.float32) * share[:, None]).to(FIRST.dtype.element_ty)
        if BOTH:
            second = (second.to(tl.float32) * share[:, None]).to(SECOND.dtype.element_ty)
    tl.store(pointers(FIRST_TO, row, column, width), first, mask=inside)
    if BOTH:
        tl.store(pointers(SECOND_TO, row, column, width), second, mask=inside)


@triton.jit(do_not_specialize_on_alignment=["BEFORE", "AFTER"])
def fuse_kernel(
    FIRST, SECOND, FIRST_TO, SECOND_TO, PLACES, SHARES, BEFORE, AFTER, width,
    ROWS: tl.constexpr, STEP: tl.constexpr, BOTH: tl.constexpr,
):  # fmt: skip
    """Programs: (text, some columns). A text's last row, if fused, is the sum of the leaving rows'
    shares.
    """
    text = tl.program_id(0)
    column = tl.program_id(1) * STEP + tl.arange(0, STEP)
    start, end = tl.load(BEFORE + text), tl.load(BEFORE + text + 1)
    new_start, new_end = tl.load(AFTER + text), tl.load(AFTER + text + 1)
    last = tl.load(PLACES + tl.maximum(new_end - 1, 0))
    if (new_start < new_end) & (last < 0):
        first = tl.zeros([STEP], tl.float32)
        second = tl.zeros([STEP], tl.float32)
        for begin in range(start, end, ROWS):
            row = begin + tl.arange(0, ROWS)
            share = tl.load(SHARES + row, mask=row < end, other=0.0)
            leaving = (share != 0.0)[:, None] & (column < width)[None, :]
            value = tl.load(pointers(FIRST, row, column, width), mask=leaving, other=0.0)
            first += tl.sum(value.to(tl.float32) * share[:, None], 0)
            if BOTH:
                value = tl.load(pointers(SECOND, row, column, width), mask=leaving, other=0.0)
                second += tl.sum(value.to(tl.float32) * share[:, None], 0)
        place = (new_end - 1).to(tl.int64) * width + column
        tl.store(FIRST_TO + place, first.to(FIRST_TO.dtype.element_ty), mask=column < width)
        if BOTH:
            tl.store(SECOND_TO + place, second.to(SECOND_TO.dtype.element_ty), mask=column < width)


@triton.jit(do_not_specialize_on_alignment=["BEFORE", "WHOLE"])
def put_back_kernel(
    HIDDEN, RESTORED, DESTINATION, ORIGIN, BEFORE, WHOLE, width,
    ROWS: tl.constexpr, STEP: tl.constexpr, ALL: tl.constexpr, TO_HIDDEN: tl.constexpr,
):  # fmt: skip
    """Programs: (text, worker, some columns). Rows of pieces that leave, or of all, to where the
    pieces were in the beginning; TO_HIDDEN: from there. Fused pieces were nowhere.
    """
    text = tl.program_id(0)
    column = tl.program_id(2) * STEP + tl.arange(0, STEP)
    start, end = tl.load(BEFORE + text), tl.load(BEFORE + text + 1)
    whole_start = tl.load(WHOLE + text)
    for begin in range(start + tl.program_id(1) * ROWS, end, tl.num_programs(1) * ROWS):
        row = begin + tl.arange(0, ROWS)
        origin = tl.load(ORIGIN + row, mask=row < end, other=FUSED_PIECE)
        moves = origin != FUSED_PIECE
        if not ALL:
            moves &= tl.load(DESTINATION + row, mask=row < end, other=0) < 0
        inside = moves[:, None] & (column < width)[None, :]
        hidden = pointers(HIDDEN, row, column, width)
        restored = pointers(RESTORED, whole_start + origin, column, width)
        if TO_HIDDEN:
            value = tl.load(restored, mask=inside, other=0.0)
            tl.store(hidden, value.to(HIDDEN.dtype.element_ty), mask=inside)
        else:
            value = tl.load(hidden, mask=inside, other=0.0)
            tl.store(restored, value.to(RESTORED.dtype.element_ty), mask=inside)
