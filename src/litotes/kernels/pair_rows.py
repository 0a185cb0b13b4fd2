"""Sums and the largest number of rows that lie on the chip as pairs of halves (pairs.py).

A thread holds numbers of two rows, as the results of products lie: of every four registers two of
its first row, then two of its second; three more threads hold the rest of the rows. To unpack and
add all these in float32 would take longer than everything else that is done with a row.

So the sum of a row is a product with ones: the matrix units take pairs as they are, add in float32,
and give every thread of the row the whole sum. Which row a number belongs to is all that the order
of the registers has to tell, and in that the result of one product is the left side of the next.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.pairs import first_of, second_of
from litotes.kernels.row_weights import INTERPRETED

N_TOGETHER = 32
"""A thread's registers of one tensor of 64 queries and 64 keys, for 4 warps."""

REGISTERS = tl.constexpr(",".join(["=f"] * N_TOGETHER + ["r"] * N_TOGETHER))


def _for_both_rows(first: str, second: str) -> str:
    """Gives what was found of each row to all its numbers."""
    found = (first, first, second, second)
    return " ".join(f"mov.f32 ${k}, {found[k % 4]};" for k in range(N_TOGETHER))


def _sums(ones: str) -> str:
    """ones: one column of the right side as a pair, by which the numbers of a pair are multiplied.

    Two chains of products, each with 16 numbers of each row: one would wait for itself.
    """
    lines = [f".reg .f32 even<4>, odd<4>; .reg .b32 ones; mov.b32 ones, {ones};"]
    lines += [f"mov.f32 {chain}{k}, 0f00000000;" for chain in ("even", "odd") for k in range(4)]
    for place in range(N_TOGETHER // 4):
        first = N_TOGETHER + 4 * place
        chain = ("even", "odd")[place % 2]
        sums = ", ".join(f"{chain}{k}" for k in range(4))
        left = ", ".join(f"${first + k}" for k in (0, 2, 1, 3))
        lines.append(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
            f" {{{sums}}}, {{{left}}}, {{ones, ones}}, {{{sums}}};"
        )
    lines.append("add.f32 even0, even0, odd0; add.f32 even2, even2, odd2;")
    return "{ " + " ".join([*lines, _for_both_rows("even0", "even2")]) + " }"


def _best() -> str:
    """The largest of each row: a thread's own, then those of its three neighbours."""
    lines = [".reg .b32 best<2>, other; .reg .b16 low, high; .reg .f32 found<2>;"]
    for row in range(2):
        own = [N_TOGETHER + k for k in range(N_TOGETHER) if k % 4 // 2 == row]
        lines.append(f"max.f16x2 best{row}, ${own[0]}, ${own[1]};")
        lines += [f"max.f16x2 best{row}, best{row}, ${k};" for k in own[2:]]
        for step in (1, 2):
            lines.append(f"shfl.sync.bfly.b32 other, best{row}, {step}, 0x1f, 0xffffffff;")
            lines.append(f"max.f16x2 best{row}, best{row}, other;")
        lines.append(f"mov.b32 {{low, high}}, best{row}; max.f16 low, low, high;")
        lines.append(f"cvt.f32.f16 found{row}, low;")
    return "{ " + " ".join([*lines, _for_both_rows("found0", "found1")]) + " }"


SUMS = tl.constexpr(_sums("0x3C003C00"))
SUMS_OF_FIRST = tl.constexpr(_sums("0x00003C00"))
BEST = tl.constexpr(_best())


@triton.jit
def _one(left, right):
    return left


@triton.jit
def _of_rows(pairs, ASM: tl.constexpr):
    """What `ASM` finds of each row, which all numbers of the row are given. (query,)"""
    everywhere = tl.inline_asm_elementwise(
        ASM, REGISTERS, [pairs], dtype=tl.float32, is_pure=True, pack=32
    )
    return tl.reduce(everywhere, 1, _one)


@triton.jit
def row_sums(pairs, PRODUCTS: tl.constexpr):
    """The sum of each row's numbers, float32. (query,)"""
    if PRODUCTS and not INTERPRETED:
        return _of_rows(pairs, SUMS)
    else:
        return tl.sum(first_of(pairs) + second_of(pairs), 1)


@triton.jit
def row_sums_of_first(pairs, PRODUCTS: tl.constexpr):
    """The same of the first numbers of all pairs."""
    if PRODUCTS and not INTERPRETED:
        return _of_rows(pairs, SUMS_OF_FIRST)
    else:
        return tl.sum(first_of(pairs), 1)


@triton.jit
def row_best(pairs, PRODUCTS: tl.constexpr):
    """The largest of each row's numbers, float32; NaN counts for nothing. (query,)"""
    if PRODUCTS and not INTERPRETED:
        return _of_rows(pairs, BEST)
    else:
        return tl.max(tl.maximum(first_of(pairs), second_of(pairs)), 1)
