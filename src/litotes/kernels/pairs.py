"""Two half-precision numbers in one register, and arithmetic on both at once.

A row of 512 affinities does not fit a program's registers as float32; as halves it does. They are
what a pass in half precision would keep in memory anyway, and the chip adds, multiplies and
compares two of them in one instruction.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.row_weights import INTERPRETED


@triton.jit
def as_bits(half):
    return half.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF


@triton.jit
def as_half(bits):
    return (bits & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def pair(first, second):
    """One tensor of int32 from two of float32."""
    if INTERPRETED:
        return as_bits(first.to(tl.float16)) | (as_bits(second.to(tl.float16)) << 16)
    else:
        return tl.inline_asm_elementwise(
            "cvt.rn.f16x2.f32 $0, $2, $1;",
            "=r,f,f", [first, second], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip


@triton.jit
def first_of(pairs):
    """As float32. Not pure, on purpose: the compiler would take it out of a loop, and with it twice
    the registers.
    """
    if INTERPRETED:
        return as_half(pairs).to(tl.float32)
    else:
        return tl.inline_asm_elementwise(
            "{ .reg .b16 low, high; mov.b32 {low, high}, $1; cvt.f32.f16 $0, low; }",
            "=f,r", [pairs], dtype=tl.float32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def second_of(pairs):
    if INTERPRETED:
        return as_half(pairs >> 16).to(tl.float32)
    else:
        return tl.inline_asm_elementwise(
            "{ .reg .b16 low, high; mov.b32 {low, high}, $1; cvt.f32.f16 $0, high; }",
            "=f,r", [pairs], dtype=tl.float32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def first_as(pairs, TYPE: tl.constexpr):
    """For what is of this type in the end: a half is one already."""
    if tl.float16 == TYPE:
        return as_half(pairs)
    else:
        return first_of(pairs)


@triton.jit
def second_as(pairs, TYPE: tl.constexpr):
    if tl.float16 == TYPE:
        return as_half(pairs >> 16)
    else:
        return second_of(pairs)


@triton.jit
def moved(pairs):
    """The same: a loop that hands on nothing but what it computed can load ahead."""
    if INTERPRETED:
        return pairs
    else:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=r,r", [pairs], dtype=tl.int32, is_pure=True, pack=1
        )


@triton.jit
def plus_if_positive(pairs, more):
    """max(pairs + more, 0); not pure, as `first_of`."""
    if INTERPRETED:
        first = _not_negative(first_of(pairs) + first_of(more))
        return pair(first, _not_negative(second_of(pairs) + second_of(more)))
    else:
        return tl.inline_asm_elementwise(
            "{ .reg .b32 one; mov.b32 one, 0x3C003C00; fma.rn.relu.f16x2 $0, $1, one, $2; }",
            "=r,r,r", [pairs, more], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def shrunk_towards_one(pairs, shrink):
    """max(1 + pairs × shrink, 0); not pure, as `first_of`."""
    if INTERPRETED:
        first = _not_negative(1.0 + first_of(pairs) * first_of(shrink))
        return pair(first, _not_negative(1.0 + second_of(pairs) * second_of(shrink)))
    else:
        return tl.inline_asm_elementwise(
            "{ .reg .b32 one; mov.b32 one, 0x3C003C00; fma.rn.relu.f16x2 $0, $1, $2, one; }",
            "=r,r,r", [pairs, shrink], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def _not_negative(numbers):
    """NaN stays NaN, as in the instruction."""
    return tl.maximum(numbers, 0.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def plus(left, right):
    if INTERPRETED:
        return pair(first_of(left) + first_of(right), second_of(left) + second_of(right))
    else:
        return tl.inline_asm_elementwise(
            "add.rn.f16x2 $0, $1, $2;",
            "=r,r,r", [left, right], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip


@triton.jit
def times(left, right):
    if INTERPRETED:
        return pair(first_of(left) * first_of(right), second_of(left) * second_of(right))
    else:
        return tl.inline_asm_elementwise(
            "mul.rn.f16x2 $0, $1, $2;",
            "=r,r,r", [left, right], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip


@triton.jit
def plus_product(sums, left, right):
    """Adds left × right to sums."""
    if INTERPRETED:
        first = first_of(sums) + first_of(left) * first_of(right)
        return pair(first, second_of(sums) + second_of(left) * second_of(right))
    else:
        return tl.inline_asm_elementwise(
            "fma.rn.f16x2 $0, $2, $3, $1;",
            "=r,r,r,r", [sums, left, right], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip


@triton.jit
def larger(left, right):
    """Of two numbers; the other one of NaN and a number."""
    if INTERPRETED:
        first = tl.maximum(first_of(left), first_of(right))
        return pair(first, tl.maximum(second_of(left), second_of(right)))
    else:
        return tl.inline_asm_elementwise(
            "max.f16x2 $0, $1, $2;",
            "=r,r,r", [left, right], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip


@triton.jit
def compared(left, right, HOW: tl.constexpr):
    """1 where left ≥ right, left < right or left = right ("ge", "lt", "eq"), else 0. Not pure, as
    `first_of`.
    """
    if INTERPRETED:
        first = _is(first_of(left), first_of(right), HOW)
        return pair(first, _is(second_of(left), second_of(right), HOW))
    else:
        return tl.inline_asm_elementwise(
            "set." + HOW + ".f16x2.f16x2 $0, $1, $2;",
            "=r,r,r", [left, right], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def _is(left, right, HOW: tl.constexpr):
    if HOW == "ge":
        return (left >= right).to(tl.float32)
    elif HOW == "lt":
        return (left < right).to(tl.float32)
    else:
        return (left == right).to(tl.float32)
