"""From the texts' lengths to all boundaries and tiles, in one launch: a program for each stage."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def pieces_left(COUNTS, length, live, stage, N_COUNTS: tl.constexpr, FUSE: tl.constexpr):
    """Of each text, how many pieces are left in a stage, fused ones apart and included."""
    real = tl.load(COUNTS + stage * N_COUNTS + length, mask=live, other=0)
    total = real
    if FUSE:
        total = length
        for before in range(1, stage + 1):
            kept = tl.load(COUNTS + before * N_COUNTS + length, mask=live, other=0)
            # what leaves, a fused piece of the stage before included, fuses into one
            total = kept + (total > kept).to(tl.int32)
    return real, total


# one compiled kernel for all numbers of texts up to a power of 2
@triton.jit(do_not_specialize=["lengths_at", "n_texts"])
def lay_out_stages(
    BLOCK, COUNTS, STAGES, lengths_at, n_texts,
    TEXTS: tl.constexpr, N_COUNTS: tl.constexpr, N_SHAPES: tl.constexpr, N_NUMBERS: tl.constexpr,
    SHIFT: tl.constexpr, FUSE: tl.constexpr,
):  # fmt: skip
    """Programs: (stage,), and one more for first pieces.

    STAGES: of each program, the stage, whether first pieces alone ask, where bounds, n_tiles and
    kept begin in the block; then of each shape where its tiles begin, how many there is room for,
    the longest text it takes, the longest that a smaller shape takes, and its rows.
    """
    numbers = STAGES + tl.program_id(0) * N_NUMBERS
    stage = tl.load(numbers)
    firsts_ask = tl.load(numbers + 1)
    text = tl.arange(0, TEXTS)
    live = text < n_texts
    length = tl.load(BLOCK + lengths_at + text, mask=live, other=0)
    real, total = pieces_left(COUNTS, length, live, stage, N_COUNTS, FUSE)
    if firsts_ask == 0:
        bounds = BLOCK + tl.load(numbers + 2)
        tl.store(bounds + text + 1, tl.cumsum(total, 0), mask=live)
        tl.store(bounds, 0)
        tl.store(BLOCK + tl.load(numbers + 4) + text, real, mask=live)
    n_queries = tl.where(firsts_ask == 0, total, tl.minimum(total, 1))
    n_tiles = tl.zeros([TEXTS], tl.int32)
    for shape in tl.static_range(N_SHAPES):
        about = numbers + 5 + 5 * shape
        tiles = BLOCK + tl.load(about)
        n_room = tl.load(about + 1)
        longest = tl.load(about + 2)
        shorter = tl.load(about + 3)
        rows = tl.load(about + 4)
        mine = live & (total > shorter) & (total <= longest)
        n_own = tl.where(mine, (n_queries + SHIFT + rows - 1) // rows, 0)
        n_tiles += n_own
        first = tl.cumsum(n_own, 0) - n_own
        for slot in range(tl.max(n_own, 0)):
            to = tiles + 2 * (first + slot)
            tl.store(to, text, mask=slot < n_own)
            tl.store(to + 1, tl.zeros_like(text) + slot, mask=slot < n_own)
        n_used = tl.sum(n_own, 0)
        for start in range(0, n_room, TEXTS):
            tl.store(
                tiles + 2 * (start + text),
                -1,
                mask=(start + text >= n_used) & (start + text < n_room),
            )
    if firsts_ask == 0:
        tl.store(BLOCK + tl.load(numbers + 3) + text, n_tiles, mask=live)
