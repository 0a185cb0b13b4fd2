"""Which weights dropout leaves: drawn again wherever they are needed, never stored.

With Philox (Salmon et al. 2011), which GPUs' generators mostly are, dropping a weight takes sixty
instructions, three times as many as all else that is done to it. Here seed, row and key are
scrambled one after the other by the last steps of MurmurHash3 (Appleby 2011): fifteen instructions,
and over a hundred million draws nothing that chance would not do.
"""

from __future__ import annotations

import triton
import triton.language as tl

GOLDEN = tl.constexpr(0x9E3779B9)
"""2³² by the golden ratio: its multiples lie far apart."""
FIRST_FACTOR = tl.constexpr(0x85EBCA6B)
SECOND_FACTOR = tl.constexpr(0xC2B2AE35)
"""MurmurHash3's: nearly every bit turns half of those that come out."""
ALL = tl.constexpr(4294967296.0)
"""How many numbers of 32 bits there are."""


@triton.jit
def times(numbers, factor: tl.constexpr):
    """What overflows is lost, as it should be."""
    return tl.mul(numbers, factor, sanitize_overflow=False)


@triton.jit
def scrambled(numbers):
    """Other numbers of 32 bits, one for each, that show nothing of those they came from."""
    numbers = times(numbers ^ (numbers >> 16), FIRST_FACTOR)
    numbers = times(numbers ^ (numbers >> 13), SECOND_FACTOR)
    return numbers ^ (numbers >> 16)


@triton.jit
def keeps_weight(SEED, query_place, key_number, head, dropout, N_HEADS: tl.constexpr):
    """Which weights dropout leaves: the same for the same seed, place in the batch and head.

    query_place, key_number: broadcast to the weights' shape.
    """
    seed = tl.load(SEED)
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    place = (query_place * N_HEADS + head).to(tl.uint32)
    row = scrambled(scrambled(times(place, GOLDEN) ^ low) ^ high)
    number = scrambled(row ^ times(key_number.to(tl.uint32), GOLDEN))
    return number >= tl.cast(dropout * ALL, tl.uint32)


@triton.jit
def after_dropout(weights, SEED, query_place, key_number, head, dropout, N_HEADS: tl.constexpr,
                  WITH_DROPOUT: tl.constexpr):  # fmt: skip
    if WITH_DROPOUT:
        kept = keeps_weight(SEED, query_place[:, None], key_number[None, :], head, dropout, N_HEADS)
        weights = tl.where(kept, weights * (1.0 / (1.0 - dropout)), 0.0)
    return weights
