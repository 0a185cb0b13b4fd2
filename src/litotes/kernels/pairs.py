"""Two half-precision numbers in one register, and arithmetic on both at once.

A row of 512 affinities does not fit a program's registers as float32; as halves it does. They are
what a pass in half precision would keep in memory anyway, and the chip adds, multiplies and
compares two of them in one instruction.
"""

from __future__ import annotations

import triton
import triton.language as tl

from litotes.kernels.rules import INTERPRETED, largest, power_below_one


@triton.jit
def as_bits(half):
    return half.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF


@triton.jit
def as_half(bits):
    return (bits & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def pair(first, second):
    """Packs two tensors of float32 into one of int32."""
    if INTERPRETED:
        return as_bits(first.to(tl.float16)) | (as_bits(second.to(tl.float16)) << 16)
    else:
        return tl.inline_asm_elementwise(
            "cvt.rn.f16x2.f32 $0, $2, $1;",
            "=r,f,f", [first, second], dtype=tl.int32, is_pure=True, pack=1,
        )  # fmt: skip


@triton.jit
def half_of(pairs, HALF, TYPE=tl.float32):
    """One of the two numbers, as float32, or where it is asked for as the half it is already. Not
    pure, on purpose: the compiler would take it out of a loop, and with it twice the registers.
    """
    if tl.float16 == TYPE:
        return as_half(pairs >> (16 * HALF))
    elif INTERPRETED:
        return as_half(pairs >> (16 * HALF)).to(tl.float32)
    else:
        return tl.inline_asm_elementwise(
            "{ .reg .b16 low, high; mov.b32 {low, high}, $1; cvt.f32.f16 $0, "
            + ("low; }" if HALF == 0 else "high; }"),
            "=f,r", [pairs], dtype=tl.float32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def moved(pairs):
    """The same: a loop that hands on nothing but what it computed can load ahead."""
    if INTERPRETED:
        return pairs
    else:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=r,r", [pairs], dtype=tl.int32, is_pure=True, pack=1
        )


# Arithmetic: an instruction for both numbers, and in the interpreter what it does to one.


@triton.jit
def on_both(INSTRUCTION, HOW, a, b, c, IS_PURE=True):
    if INTERPRETED:
        first = on_one(HOW, half_of(a, 0), half_of(b, 0), half_of(c, 0))
        return pair(first, on_one(HOW, half_of(a, 1), half_of(b, 1), half_of(c, 1)))
    else:
        return tl.inline_asm_elementwise(
            INSTRUCTION, "=r,r,r,r", [a, b, c], dtype=tl.int32, is_pure=IS_PURE, pack=1
        )


@triton.jit
def on_one(HOW, a, b, c):
    found = a
    if HOW == "plus":
        found = a + b
    elif HOW == "times":
        found = a * b
    elif HOW == "plus product":
        found = a + b * c
    elif HOW == "larger":
        found = tl.maximum(a, b)
    elif HOW == "ge":
        found = (a >= b).to(tl.float32)
    elif HOW == "lt":
        found = (a < b).to(tl.float32)
    elif HOW == "eq":
        found = (a == b).to(tl.float32)
    elif HOW == "plus if positive":
        found = tl.maximum(a + b, 0.0, propagate_nan=tl.PropagateNan.ALL)
    else:
        found = tl.maximum(1.0 + a * b, 0.0, propagate_nan=tl.PropagateNan.ALL)
    return found


@triton.jit
def plus(left, right):
    return on_both("add.rn.f16x2 $0, $1, $2;", "plus", left, right, right)


@triton.jit
def times(left, right):
    return on_both("mul.rn.f16x2 $0, $1, $2;", "times", left, right, right)


@triton.jit
def plus_product(sums, left, right):
    """Adds left × right to sums."""
    return on_both("fma.rn.f16x2 $0, $2, $3, $1;", "plus product", sums, left, right)


@triton.jit
def larger(left, right):
    """Returns the larger of two numbers; of NaN and a number, the number."""
    return on_both("max.f16x2 $0, $1, $2;", "larger", left, right, right)


@triton.jit
def compared(left, right, HOW):
    """1 where left ≥ right, left < right or left = right ("ge", "lt", "eq"), else 0. Not pure, as
    `half_of`.
    """
    return on_both("set." + HOW + ".f16x2.f16x2 $0, $1, $2;", HOW, left, right, right, False)


@triton.jit
def plus_if_positive(pairs, more):
    """max(pairs + more, 0); not pure, as `half_of`."""
    return on_both(
        "{ .reg .b32 one; mov.b32 one, 0x3C003C00; fma.rn.relu.f16x2 $0, $1, one, $2; }",
        "plus if positive", pairs, more, more, False,
    )  # fmt: skip


@triton.jit
def shrunk_towards_one(pairs, shrink):
    """max(1 + pairs × shrink, 0); not pure, as `half_of`."""
    return on_both(
        "{ .reg .b32 one; mov.b32 one, 0x3C003C00; fma.rn.relu.f16x2 $0, $1, $2, one; }",
        "shrunk towards one", pairs, shrink, shrink, False,
    )  # fmt: skip


# Sums and the largest number of rows that lie on the chip as pairs of halves (pairs.py).
#
# A thread holds numbers of two rows, as the results of products lie: of every four registers two of
# its first row, then two of its second; three more threads hold the rest of the rows. To unpack and
# add all these in float32 would take longer than everything else that is done with a row.
#
# So the sum of a row is a product with ones: the matrix units take pairs as they are, add in
# float32, and give every thread of the row the whole sum. Which row a number belongs to is all that
# the order of the registers has to tell, and in that the result of one product is the left side of
# the next.

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
def _of_rows(pairs, ASM):
    """Runs `ASM`, which gives all numbers of a row what it finds of the row. (query,)"""
    everywhere = tl.inline_asm_elementwise(
        ASM, REGISTERS, [pairs], dtype=tl.float32, is_pure=True, pack=32
    )
    return tl.reduce(everywhere, 1, _one)


@triton.jit
def row_sums(pairs, PRODUCTS):
    """The sum of each row's numbers, float32. (query,)"""
    if PRODUCTS and not INTERPRETED:
        return _of_rows(pairs, SUMS)
    else:
        return tl.sum(half_of(pairs, 0) + half_of(pairs, 1), 1)


@triton.jit
def row_sums_of_first(pairs, PRODUCTS):
    """The same of the first numbers of all pairs."""
    if PRODUCTS and not INTERPRETED:
        return _of_rows(pairs, SUMS_OF_FIRST)
    else:
        return tl.sum(half_of(pairs, 0), 1)


@triton.jit
def row_best(pairs, PRODUCTS):
    """The largest of each row's numbers, float32; NaN counts for nothing. (query,)"""
    if PRODUCTS and not INTERPRETED:
        return _of_rows(pairs, BEST)
    else:
        return tl.max(tl.maximum(half_of(pairs, 0), half_of(pairs, 1)), 1)


# Entmax for rows that lie on the chip as pairs of halves (pairs.py): how far a row reaches.
#
# As rules.py, which has the equations; a row is a tuple of N_PAIRS tensors of pairs, and tells how
# far its keys are behind the best one.
#
#     excess E of the norm at some reach:  1 + E = (reach / β) A^{1/β},  A = Σ v^β,  B = Σ v^{β−1}
#     a step:                              reach → reach × (1 + E)^{−A / B}
#
# This is Newton's step on the logarithm of the norm by the logarithm of the reach, which is nearly
# straight: two steps from above do what five do on the norm itself. But it may fall short of the
# root and, where nearly all keys are equally far away, for ever; so `squares_reach` goes on with
# steps on the norm, which never do, and `powers_reach` is followed by `exact_reach` where the sum
# of the weights tells that something is amiss.

N_PAIRS = tl.constexpr(4)

MOST_TURNS = tl.constexpr(12)
"""A bound for rows that never settle. (A `while` over tensors of pairs is too much for Triton 3.6.)
"""

MOST_SQUARINGS = tl.constexpr(4)
"""Up to v^64, which half precision can still tell apart; beyond, rows begin farther away."""


@triton.jit
def rounded(numbers):
    """Rounds to half precision."""
    return numbers.to(tl.float16).to(tl.float32)


@triton.jit
def for_all(numbers):
    """A number for each row, as pairs. (query, 1)"""
    return pair(numbers, numbers)[:, None]


@triton.jit
def squares_sums(behind, more, PRODUCTS):
    """The rows' Σ v and Σ v²: v = max(behind + more, 0)."""
    sums = plus_if_positive(behind[0], more)
    squares = times(sums, sums)
    for part in tl.static_range(1, N_PAIRS):
        inside = plus_if_positive(behind[part], more)
        sums = plus(sums, inside)
        squares = plus_product(squares, inside, inside)
    return row_sums(sums, PRODUCTS), row_sums(squares, PRODUCTS)


@triton.jit
def squares_reach(behind, missing, ROWS, PRODUCTS):
    """α = 1.5, as `squares_row`, two keys at a time."""
    close = 4.0 * tl.sqrt(missing)
    reach = tl.full([ROWS], 2.0, tl.float32)
    for _ in range(2):
        total, squares = squares_sums(behind, for_all(reach), PRODUCTS)
        half_norm = 0.5 * tl.log2(squares) - 1.0
        reach = reach * tl.exp2(-half_norm * squares / (reach * total))
        reach = rounded(tl.minimum(reach, 2.0))
    # The program asks all its rows whether they have settled after the third turn, not before: its
    # warps would wait for each other.
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
            reach = rounded(reach)
            total, squares = squares_sums(behind, for_all(reach), PRODUCTS)
            norm = tl.sqrt(squares)
            excess = norm - 2.0
            reach = tl.minimum(reach - excess * norm / total, 2.0)
            worst = largest(tl.abs(excess))
    return reach


@triton.jit
def cubic(place, first, second, third, fourth):
    """Weighs four known places for what is at `place`: the cubic through them."""
    a, b, c, d = place - first, place - second, place - third, place - fourth
    return (
        b * c * d / ((first - second) * (first - third) * (first - fourth)),
        a * c * d / ((second - first) * (second - third) * (second - fourth)),
        a * b * d / ((third - first) * (third - second) * (third - fourth)),
        a * b * c / ((fourth - first) * (fourth - second) * (fourth - third)),
    )


@triton.jit
def log_of_others(pairs, PRODUCTS):
    """log₂ of a row's sum without its best key, whose part in every Σ v^p is 1. (query,)"""
    return tl.log2(tl.maximum(row_sums(pairs, PRODUCTS) - 1.0, 0.001))


@triton.jit
def logs_of_others(a, b, c, d, PRODUCTS):
    return (
        log_of_others(a, PRODUCTS),
        log_of_others(b, PRODUCTS),
        log_of_others(c, PRODUCTS),
        log_of_others(d, PRODUCTS),
    )


@triton.jit
def moments_below_two(behind, shrink, PRODUCTS):
    """Takes logs of the rows' Σ v^0, Σ v, Σ v² and Σ v³: v = max(1 + behind × shrink, 0)."""
    counts = tl.zeros_like(behind[0])
    sums = tl.zeros_like(counts)
    squares = tl.zeros_like(counts)
    cubes = tl.zeros_like(counts)
    for part in tl.static_range(N_PAIRS):
        inside = shrunk_towards_one(behind[part], shrink)
        counts = plus(counts, compared(tl.zeros_like(shrink), inside, "lt"))
        sums = plus(sums, inside)
        squared = times(inside, inside)
        squares, cubes = plus(squares, squared), plus_product(cubes, squared, inside)
    return logs_of_others(counts, sums, squares, cubes, PRODUCTS)


@triton.jit
def moments_from_two(behind, shrink, n_squarings, PRODUCTS):
    """Takes logs of the rows' Σ v^(p/2), Σ v^p, Σ v^(3p/2) and Σ v^2p: p = 2^(1 + n_squarings)."""
    lower = tl.zeros_like(behind[0])
    middle = tl.zeros_like(lower)
    higher = tl.zeros_like(lower)
    upper = tl.zeros_like(lower)
    for part in tl.static_range(N_PAIRS):
        inside = shrunk_towards_one(behind[part], shrink)
        for _ in range(n_squarings):
            inside = times(inside, inside)
        lower = plus(lower, inside)
        squared = times(inside, inside)
        middle, higher = plus(middle, squared), plus_product(higher, squared, inside)
        upper = plus_product(upper, squared, squared)
    return logs_of_others(lower, middle, higher, upper, PRODUCTS)


@triton.jit
def powers_reach(behind, beta, ROWS, PRODUCTS):
    """Finds the reach for any α in (1, 2], to some thousandths at worst for rows as they come.

    A power of every number at every turn, whatever β, would keep the chip's special functions busy
    for longer than all else takes. But log Σ v^p over all keys but the best is a smooth function of
    p, and multiplications give it at four places around β: at 0, 1, 2 and 3, or at p/2, p, 3p/2 and
    2p for p a power of 2. The cubic through them stands for what lies between.
    """
    is_low = beta < 2.0
    n_squarings = tl.where(is_low, 0, tl.floor(tl.log2(beta)).to(tl.int32) - 1)
    n_squarings = tl.minimum(n_squarings, MOST_SQUARINGS)
    # places by log (p + shift): with this shift the curve is nearly straight, from 0 on
    shift = tl.where(is_low, 0.7, 0.0)
    unit = tl.where(is_low, 1.0, tl.exp2(n_squarings.to(tl.float32)))
    first = tl.log2(tl.where(is_low, 0.7, unit))
    second = tl.log2(tl.where(is_low, 1.7, 2.0 * unit))
    third = tl.log2(tl.where(is_low, 2.7, 3.0 * unit))
    fourth = tl.log2(tl.where(is_low, 3.7, 4.0 * unit))
    of_total = cubic(tl.log2(beta + shift), first, second, third, fourth)
    of_slope = cubic(tl.log2(beta - 1.0 + shift), first, second, third, fourth)
    shrink = tl.zeros([ROWS], tl.float32) + 1.0 / beta
    n_turns = tl.where(beta < 1.3, 4, tl.where(beta < 3.0, 3, 2))
    for _ in range(n_turns):
        shrink = rounded(shrink)
        if is_low:
            a, b, c, d = moments_below_two(behind, for_all(shrink), PRODUCTS)
        else:
            a, b, c, d = moments_from_two(behind, for_all(shrink), n_squarings, PRODUCTS)
        total = tl.exp2(of_total[0] * a + of_total[1] * b + of_total[2] * c + of_total[3] * d)
        slope = tl.exp2(of_slope[0] * a + of_slope[1] * b + of_slope[2] * c + of_slope[3] * d)
        log_excess = tl.log2(1.0 + total) / beta - tl.log2(shrink * beta)
        shrink *= tl.exp2(log_excess * tl.minimum((1.0 + total) / (1.0 + slope), 1.0))
        shrink = tl.maximum(shrink, 1.0 / beta)
    return 1.0 / shrink


@triton.jit
def powers_excess(total, reach, beta):
    """E, from Σ v^β."""
    return reach / beta * tl.exp2(tl.log2(total) / beta) - 1.0


@triton.jit
def powers_sums(behind, reach, beta, ROWS):
    """The rows' Σ v^β and Σ v^(β−1): v = max(1 + behind / reach, 0)."""
    shrink = (1.0 / reach)[:, None]
    total = tl.zeros([ROWS], tl.float32)
    slope = tl.zeros([ROWS], tl.float32)
    for part in tl.static_range(N_PAIRS):
        first = tl.maximum(half_of(behind[part], 0) * shrink, -1.0)
        lower = power_below_one(first, beta - 1.0, False)
        second = tl.maximum(half_of(behind[part], 1) * shrink, -1.0)
        lower_second = power_below_one(second, beta - 1.0, False)
        total += tl.sum(lower * (1.0 + first) + lower_second * (1.0 + second), 1)
        slope += tl.sum(lower + lower_second, 1)
    return total, slope


@triton.jit
def exact_reach(behind, reach, beta, missing, ROWS):
    """Finds the reach for any α in (1, 2], as `powers_row`, from any start."""
    close = 4.0 * tl.exp2(tl.log2(missing) / tl.minimum(beta, 2.0))
    worst = close + 1.0
    for _ in range(MOST_TURNS):
        if worst > close:
            total, slope = powers_sums(behind, reach, beta, ROWS)
            excess = powers_excess(total, reach, beta)
            step = reach * excess / (1.0 + excess) * total / slope
            reach = tl.minimum(reach - step, beta)
            worst = largest(tl.abs(excess))
    return reach


# The best keys of rows that lie on the chip as pairs of halves (pairs.py).
#
# No number is larger than 0, the best key's. So numbers are ordered as their bits are, without the
# sign: the n-th largest is found bit by bit, the same 15 turns for every row, and no warp waits for
# another. Of equal numbers the earlier ones stay; the later ones are moved far behind.

N_BITS, HIGHEST_BIT = tl.constexpr(15), tl.constexpr(0x4000)
INFINITE = tl.constexpr(0x7C00)
"""The bits of infinity in half precision, above those of all numbers."""

FAR = tl.constexpr(-30000.0)
FAR_PAIR = tl.constexpr(0xF753F753 - 2**32)
"""So far behind that there is no weight: e to this power is 0. And as a pair."""


@triton.jit
def minus(bits):
    """−x for each row, as pairs, from the bits of x. (query, 1)"""
    return ((bits | 0x8000) * 0x10001)[:, None]


@triton.jit
def n_reaching(behind, least, PRODUCTS):
    """Counts each row's keys that are at least so near the best one. (query,)"""
    reaching = compared(behind[0], least, "ge")
    for part in tl.static_range(1, N_PAIRS):
        reaching = plus(reaching, compared(behind[part], least, "ge"))
    return row_sums(reaching, PRODUCTS)


@triton.jit
def kept_reach(behind, n_kept, ROWS, PRODUCTS):
    """The n_kept-th largest of each row, as the bits of how far behind it is, how many keys are at
    least as large, and how many larger.
    """
    reach = tl.zeros([ROWS], tl.int32)  # too few keys are nearer
    n_reached = tl.zeros([ROWS], tl.float32)
    n_nearer = tl.zeros([ROWS], tl.float32)
    bit = tl.full([ROWS], HIGHEST_BIT, tl.int32)
    for _ in range(N_BITS):
        farther = reach + bit
        least = minus(tl.minimum(farther - 1, INFINITE))
        n_found = n_reaching(behind, least, PRODUCTS)
        is_few = n_found < n_kept
        reach = tl.where(is_few, farther, reach)
        n_nearer = tl.where(is_few, n_found, n_nearer)
        n_reached = tl.where(is_few, n_reached, n_found)
        bit = bit >> 1
    return reach, n_reached, n_nearer


@triton.jit
def block_of_last(behind, at, n_wanted, ROWS, PRODUCTS):
    """Finds the block of the last wanted key, and how many are wanted of that block. (query,)

    Wanted are the n_wanted earliest keys exactly `at`.
    """
    block = tl.zeros([ROWS], tl.int32)
    n_there = n_wanted
    n_before = tl.zeros([ROWS], tl.float32)
    for part in tl.static_range(N_PAIRS):
        equal = compared(behind[part], at, "eq")
        n_both, n_first = row_sums(equal, PRODUCTS), row_sums_of_first(equal, PRODUCTS)
        for half in tl.static_range(2):
            n_here = n_first if half == 0 else n_both - n_first
            is_it = (n_before < n_wanted) & (n_before + n_here >= n_wanted)
            block = tl.where(is_it, 2 * part + half, block)
            n_there = tl.where(is_it, n_wanted - n_before, n_there)
            n_before += n_here
    return block, n_there


@triton.jit
def where_both(first, second, number):
    """`number` or 0 for each row, as pairs. (query, 1)"""
    return pair(tl.where(first, number, 0.0), tl.where(second, number, 0.0))[:, None]


@triton.jit
def only_in(block, part, number):
    """`number` for rows whose block lies in this part, in its half of the pair."""
    return where_both(block == 2 * part, block == 2 * part + 1, number)


@triton.jit
def part_without_late(pairs, at, late, block, part):
    # in rows whose block lies before this part's, for each half of the pair
    after = where_both(block < 2 * part, block < 2 * part + 1, FAR)
    pairs = plus_product(pairs, compared(pairs, at, "eq"), after)
    return plus_product(pairs, late, only_in(block, part, FAR))


@triton.jit
def without_late(behind, reach, n_wanted, ROWS, PART, PRODUCTS):
    """The same rows, but of keys exactly at `reach` only so many, the earlier ones."""
    at = minus(reach)
    block, n_there = block_of_last(behind, at, n_wanted, ROWS, PRODUCTS)
    of_block = tl.zeros([ROWS, PART], tl.int32)
    for part in tl.static_range(N_PAIRS):
        equal = compared(behind[part], at, "eq")
        of_block = plus_product(of_block, equal, only_in(block, part, 1.0))
    is_equal = as_half(of_block) + as_half(of_block >> 16)  # one of them is 0
    # how many there are up to each key: a product with ones up to there
    number = tl.arange(0, PART)
    up_to = (number[:, None] <= number[None, :]).to(tl.float16)
    place = tl.dot(is_equal, up_to)
    late = ((is_equal > 0.0) & (place > n_there[:, None])).to(tl.float32)
    late = pair(late, late)
    return (
        part_without_late(behind[0], at, late, block, 0),
        part_without_late(behind[1], at, late, block, 1),
        part_without_late(behind[2], at, late, block, 2),
        part_without_late(behind[3], at, late, block, 3),
    )


@triton.jit
def only_kept(pairs, at):
    """The same numbers, but far behind where they are below `at`. NaN stays."""
    return plus_product(pairs, compared(pairs, at, "lt"), tl.zeros_like(at) + FAR_PAIR)
