"""Attention over packed texts, with its gradient: which kernel is launched for which texts.

    mixed = weights(query · keyᵀ / √d + bias) · value      text by text, attention head by head

Each launch does all texts of one shape (tiles.py). Rows that fit the chip are held whole; longer
ones are walked block by block, or lie there as pairs of halves (long_rows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from litotes.encoder.attention.weighting import LONGEST, RowRule
from litotes.kernels.backward_kernels import query_gradient, walk_for_keys, walk_for_queries
from litotes.kernels.forward_kernels import attend_tile, walk_keys
from litotes.kernels.long_rows import attend_pairs
from litotes.kernels.tiles import Shape, Tiles

Told = dict[str, Any]
"""What kernels are told, by the names of their arguments."""

CLOSE = {torch.float32: 1.2e-7, torch.float16: 1e-6, torch.bfloat16: 1e-5}
"""What may be missing from a sum of 1 when entmax stops looking: under what the type can show."""

MOST_REGISTERS = 128
"""Of a thread that adds up what 128 keys received in half precision. With 128 of them as many
programs fit as where it is not asked for, and a few numbers lie in slower memory.
"""

AMISS = {torch.float16: 4e-3, torch.bfloat16: 1.25e-2}
"""By how much the sum of a long row's powers may be amiss before its reach is looked for again with
exact sums: what then is amiss with the weights is about as much as the type cannot show.
"""

PAIRS_TOGETHER = 2
"""Pairs of blocks of keys that a walk takes at a time, on Hopper alone: elsewhere there may be no
room for so many keys.
"""

CHIP = 2**16
"""Bytes of keys, or of values, that lie on the chip at a time."""

MOST_PAIRS = 2**13
"""Pairs of a query and a key in a program of whole rows: weights, and what pulls on them, lie in
registers together. Beyond that they no longer fit (ptxas, sm_90); with more than these two, half.
"""

WALKS_BEYOND = 64
"""The gradients of longer texts are walked, shorter ones lie on the chip whole. LONGEST: none is
walked.
"""

EVEN = 128
"""Each text's rows are filled up to a multiple of it: no block of queries is larger."""


@dataclass(frozen=True)
class Blocks:
    """held: rows that a program has all the time. step: rows of the other side that come by.

    most_registers: of a thread; 168 are the most for three programs of 4 warps at a time.
    """

    held: int
    step: int
    n_warps: int
    n_stages: int
    most_registers: int | None = None


BY_QUERY = Blocks(64, 32, 4, 3, 168)
BY_KEY = Blocks(64, 64, 4, 3, 168)
"""For attention heads of up to 64 columns: the quickest of six and of seven on an H200."""


@dataclass(frozen=True)
class DistanceBias:
    """MPNet's bias. buckets: by distance from −LONGEST to LONGEST. (2 × LONGEST + 1,)

    by_bucket: (bucket, attention_head), float32. origin: each piece's place in its text. (piece,)
    """

    buckets: Tensor
    by_bucket: Tensor
    origin: Tensor


@dataclass(frozen=True)
class Packed:
    """Queries, keys and values of texts laid end to end, each (piece, attention_head, head_width).

    query_bounds, key_bounds: where each text begins, and where the last one ends. (text + 1,)
    alive: the attention heads each text still uses, as bits. (text,)
    """

    query: Tensor
    key: Tensor
    value: Tensor
    query_bounds: Tensor
    key_bounds: Tensor
    tiles: Sequence[Tiles]
    bias: DistanceBias | None = None
    alive: Tensor | None = None


@dataclass(frozen=True)
class Wanted:
    """The extra outputs of a launch.

    importance: "none", "received" or "value". n_slots: tiles of the longest text.
    """

    importance: str = "none"
    head_size: bool = False
    row_numbers: bool = False
    n_slots: int = 1


@dataclass(frozen=True)
class Attended:
    """mixed: (piece, attention_head, head_width). received: (slot, attention_head, piece).

    head_size: (text, slot, attention_head). row_numbers: (3, attention_head, piece). chosen: bits
    of the chosen keys, (attention_head, piece, word).
    """

    mixed: Tensor
    received: Tensor | None = None
    head_size: Tensor | None = None
    row_numbers: Tensor | None = None
    chosen: Tensor | None = None


def packed_attention(
    packed: Packed,
    rule: RowRule,
    *,
    wanted: Wanted,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    stacked: Tensor | None = None,
) -> Attended:
    """Differentiable in query, key, value, α and the bias; what besides `mixed` comes out is not.

    seed: where the kernels find their seed, (1,) int64, with dropout; a backward pass reads it
    again and has to find the same.
    stacked: what query, key and value are slices of, (piece, 3, attention_head, head_width), or key
    and value, (piece, 2, …): its gradient is then written in one piece.
    """
    by_bucket = None if packed.bias is None else packed.bias.by_bucket
    sources: tuple[Tensor, ...] = packed.query, packed.key, packed.value
    if stacked is not None:
        sources = (stacked,) if stacked.shape[1] == 3 else (packed.query, stacked)
    learned = [tensor for tensor in (rule.alpha, by_bucket, *sources) if tensor is not None]
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in learned)):
        return attend(packed, rule, wanted=wanted, dropout=dropout, seed=seed)
    told = _arguments(packed, rule, dropout, seed)
    # autograd saves these itself, and may change where they lie
    told = {name: value for name, value in told.items() if name not in LEARNED}
    wanted = replace(wanted, row_numbers=True)
    out = _PackedAttention.apply(told, wanted, packed.tiles, rule.alpha, by_bucket, *sources)
    return Attended(*out)


def attend(
    packed: Packed,
    rule: RowRule,
    *,
    wanted: Wanted = Wanted(),  # noqa: B008 - frozen
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Attended:
    """Attends without a gradient; of what one needs, writes what is `wanted`."""
    return _attend(_arguments(packed, rule, dropout, seed), wanted, packed.tiles)


def _attend(told: Told, wanted: Wanted, all_tiles: Sequence[Tiles]) -> Attended:
    query, dtype = told["QUERY"], told["QUERY"].dtype
    n_queries, n_heads, head_width = query.shape
    n_keys, n_texts = len(told["KEY"]), len(told["KEY_BOUNDS"]) - 1
    new, single = query.new_empty, torch.float32
    # a gradient may come from rows of no text: what was in memory before must not get into it
    new_mixed = query.new_zeros if wanted.row_numbers else new
    has_importance = wanted.importance != "none"
    has_choice = wanted.row_numbers and told["CHOOSES"]
    out = Attended(
        new_mixed(n_queries, n_heads, head_width),
        new(wanted.n_slots, n_heads, n_keys, dtype=single) if has_importance else None,
        new(n_texts, wanted.n_slots, n_heads, dtype=single) if wanted.head_size else None,
        new(3, n_heads, n_queries, dtype=single) if wanted.row_numbers else None,
        new(n_heads, n_queries, LONGEST // 32, dtype=torch.int32) if has_choice else None,
    )
    told = told | {
        "MIXED": out.mixed,
        "RECEIVED": out.received,
        "HEAD_SIZE": out.head_size,
        "ROW_NUMBERS": out.row_numbers,
        "CHOSEN": out.chosen,
        "n_slots_apart": n_keys,
        "n_slots": wanted.n_slots,
        "missing": CLOSE[dtype],
        "IMPORTANCE": wanted.importance,
    }
    for tiles in all_tiles:
        kernel, own = _forward_kernel(tiles.shape, told)
        _launch(kernel, len(tiles.numbers), told, TILES=tiles.numbers, **own)
    return out


def _forward_kernel(shape: Shape, told: Told) -> tuple[Any, Told]:
    """The kernel for texts of a shape, and what it alone is told."""
    own: Told = {"ROWS": shape.rows, "num_warps": shape.n_warps}
    query = told["QUERY"]
    if not shape.walks:
        has_limit = told["IMPORTANCE"] != "none" and shape.span == 128 and not told["PRECISE"]
        limit = MOST_REGISTERS if has_limit else None
        step = step_of(query, shape.span)
        return attend_tile, own | {"STEP": step, "SPAN": shape.span, "maxnreg": limit}
    if told["RULE"] == "softmax":
        return walk_keys, own | {"PART": shape.block, "num_stages": 2}
    # the order of a product's results in the registers is known of Hopper alone (pairs.py)
    on_hopper = is_hopper(query.device)
    return attend_pairs, own | {
        "PART": shape.block,
        "amiss": AMISS[query.dtype],
        # a gradient has products that are not rounded, whose weights the row's numbers should fit
        "CENTRED": told["ROW_NUMBERS"] is not None,
        "PRODUCTS": on_hopper,
        "TOGETHER": PAIRS_TOGETHER if on_hopper else 1,
    }


LEARNED = ("QUERY", "KEY", "VALUE", "ALPHA", "BIAS")
"""Arguments that may have a gradient."""


def _arguments(packed: Packed, rule: RowRule, dropout: float, seed: Tensor | None) -> Told:
    """Builds the arguments that all kernels take, by their names."""
    query, key, value, bias = packed.query, packed.key, packed.value, packed.bias
    n_queries, n_heads, head_width = query.shape
    return {
        "QUERY": query,
        "KEY": key,
        "VALUE": value,
        "QUERY_BOUNDS": packed.query_bounds,
        "KEY_BOUNDS": packed.key_bounds,
        "ALPHA": rule.alpha,
        "KEPT": rule.kept,
        "ORIGIN": None if bias is None else bias.origin,
        "BUCKETS": None if bias is None else bias.buckets,
        "BIAS": None if bias is None else bias.by_bucket,
        "ALIVE": packed.alive,
        "SEED": seed,
        "n_rows_apart": n_queries,
        "scale": head_width**-0.5,
        "dropout": dropout,
        "N_HEADS": n_heads,
        "HEAD_WIDTH": head_width,
        "WIDTH": whole_width(head_width),
        "FARTHEST": LONGEST,
        "SHIFT": rule.block - 1,
        "BLOCK": rule.block,
        "RULE": rule.name,
        "CHOOSES": rule.chooses,
        "PRECISE": query.dtype == torch.float32,
        "WITH_DROPOUT": dropout > 0,
    }


def _launch(kernel: Any, n_programs: int, told: Told, **own: Any) -> None:
    """A program for each attention head of each of so many parts, told what the kernel asks for.

    Of a tensor X that it is told, a kernel may ask for x_stride and whether it is there, WITH_X.
    """
    if n_programs == 0:
        return
    told, asked = told | own, {}
    for name in kernel.arg_names:
        if name in told:
            # where there is no tensor the kernel is told some other, which it never reads
            asked[name] = told["KEY_BOUNDS"] if told[name] is None else told[name]
        elif name.startswith("WITH_"):
            asked[name] = told[name.removeprefix("WITH_")] is not None
        else:
            asked[name] = told[name.removesuffix("_stride").upper()].stride(0)
    options = {name: value for name, value in own.items() if name not in asked}
    kernel[(n_programs, told["N_HEADS"])](**asked, **options)


def whole_width(head_width: int) -> int:
    """An attention head's width as kernels hold it: a power of 2, as products want it."""
    return max(16, triton.next_power_of_2(head_width))


def step_of(query: Tensor, span: int) -> int:
    """Picks how many columns of an attention head are on the chip at a time."""
    step = whole_width(query.shape[-1])
    while step > 16 and step * span * query.element_size() > CHIP:
        step //= 2
    return step


def is_hopper(device: torch.device) -> bool:
    if device.type != "cuda" or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(device)[0] == 9


class _PackedAttention(torch.autograd.Function):
    """Its tensors: α, the bias by bucket, and one to three that hold query, key and value."""

    @staticmethod
    def forward(
        ctx: Any,
        told: Told,
        wanted: Wanted,
        tiles: Sequence[Tiles],
        alpha: Tensor | None,
        by_bucket: Tensor | None,
        *sources: Tensor,
    ) -> tuple[Tensor | None, ...]:
        learned = (*_split(sources), alpha, by_bucket)
        out = _attend(told | dict(zip(LEARNED, learned, strict=True)), wanted, tiles)
        ctx.told, ctx.tiles = told, tiles
        ctx.save_for_backward(out.mixed, out.row_numbers, out.chosen, alpha, by_bucket, *sources)
        ctx.set_materialize_grads(False)
        extra = [tensor for tensor in (out.received, out.head_size) if tensor is not None]
        ctx.mark_non_differentiable(*extra)
        return out.mixed, out.received, out.head_size

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_mixed: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if to_mixed is None:
            return (None,) * len(ctx.needs_input_grad)
        mixed, row_numbers, chosen, alpha, by_bucket, *sources = ctx.saved_tensors
        # rows that belong to no text are never written
        to_sources = [source.new_zeros(source.shape) for source in sources]
        to_query, to_key, to_value = _split(to_sources)
        to_alpha = torch.zeros_like(row_numbers[0]) if ctx.needs_input_grad[3] else None
        learned = (*_split(sources), alpha, by_bucket)
        told = ctx.told | dict(zip(LEARNED, learned, strict=True))
        told |= {
            "MIXED": mixed,
            "TO_MIXED": to_mixed.contiguous(),
            "ROW_NUMBERS": row_numbers,
            "CHOSEN": chosen,
            "TO_QUERY": to_query,
            "TO_KEY": to_key,
            "TO_VALUE": to_value,
            "TO_ALPHA": to_alpha,
        }
        to_bias = _pull_back(told, ctx.tiles)
        # (attention_head,)
        by_head = None if to_alpha is None else to_alpha.sum(1).to(alpha.dtype)
        return (None, None, None, by_head, to_bias, *to_sources)


def _split(sources: Sequence[Tensor]) -> list[Tensor]:
    """Query, key and value, each (piece, attention_head, head_width), from what holds them."""
    parts: list[Tensor] = []
    for source in sources:
        parts += source.unbind(1) if source.dim() == 4 else [source]
    return parts


def _pull_back(told: Told, all_tiles: Sequence[Tiles]) -> Tensor | None:
    """Writes the gradients; gives that of the bias, (bucket, attention_head), if any.

    Tiles of different shapes have different texts: the order of the launches does not matter.
    """
    (n_pieces, n_heads, _), chosen = told["QUERY"].shape, told["CHOSEN"]
    n_texts, to_bias = len(told["KEY_BOUNDS"]) - 1, None
    n_lines = (n_pieces // EVEN + n_texts + 1) * EVEN
    # from queries to keys (`walk_for_queries` says what)
    told = told | {
        "LINES": told["ROW_NUMBERS"].new_zeros(n_heads, 3, n_lines),
        "TURNED": None if chosen is None else chosen.new_empty(n_heads, LONGEST // 32, n_lines),
        "n_lines": n_lines,
        "EVEN": EVEN,
    }
    used = [tiles for tiles in all_tiles if len(tiles.numbers)]
    whole = [tiles for tiles in used if not _walks_back(tiles.shape, told)]
    for tiles in whole:
        by_program = _pull_queries(told, tiles)
        if by_program is not None:
            by_bucket = by_program.sum(0).T
            to_bias = by_bucket if to_bias is None else to_bias + by_bucket
    longest = max((tiles.shape.span for tiles in used), default=0)
    if len(whole) < len(used):
        told["n_shorter"] = max((tiles.shape.span for tiles in whole), default=0)
        _walk(walk_for_queries, told, longest, BY_QUERY, held="ROWS", step="KEYS")
    if used:
        _walk(walk_for_keys, told, longest, BY_KEY, held="KEYS", step="QUERIES")
    return to_bias


def _pull_queries(told: Told, tiles: Tiles) -> Tensor | None:
    """Gives each program's part of the bias's gradient. (program, attention_head, bucket)"""
    query, bias, shape = told["QUERY"], told["BIAS"], tiles.shape
    has_more = told["RULE"] == "powers" or bias is not None or told["PRECISE"]
    # of a tile's queries a program does a power of 2, as all of these are
    n_rows = min(shape.rows, max(16, MOST_PAIRS // (2 if has_more else 1) // shape.span))
    n_programs = len(tiles.numbers) * (shape.rows // n_rows)
    n_buckets = 1 if bias is None else len(bias)
    to_bias = None
    if bias is not None:
        to_bias = bias.new_zeros(n_programs, query.shape[1], n_buckets)
    _launch(
        query_gradient, n_programs, told | {"TO_BIAS": to_bias},
        TILES=tiles.numbers, STEP=step_of(query, shape.span),
        TILE_ROWS=shape.rows, ROWS=n_rows, SPAN=shape.span, N_BUCKETS=n_buckets,
        num_warps=8 if shape.span >= 128 or told["PRECISE"] else shape.n_warps,
    )  # fmt: skip
    return to_bias


def _walks_back(shape: Shape, told: Told) -> bool:
    """Tells whether queries of this shape's texts walk. Those with a bias do not: its gradient adds
    up by bucket what each pair pulls, and that is known only after a walk.
    """
    return (
        shape.span > WALKS_BEYOND
        and not told["PRECISE"]
        and told["BIAS"] is None
        and told["QUERY_BOUNDS"] is told["KEY_BOUNDS"]
    )


def _blocks(blocks: Blocks, told: Told, longest: int) -> Blocks:
    """The blocks for these numbers, from those for half precision and up to 64 columns."""
    if told["PRECISE"]:
        return Blocks(32, 32, 8, 1)
    if told["HEAD_WIDTH"] > 64:
        # twice the columns leave room for half the pairs
        blocks = replace(blocks, step=max(32, blocks.step // 2), most_registers=None)
    # a bias is looked up for every pair; of short texts there is nothing to load ahead
    if told["BIAS"] is not None or (longest <= WALKS_BEYOND and told["WITH_DROPOUT"]):
        return replace(blocks, n_warps=8, n_stages=2, most_registers=None)
    return replace(blocks, most_registers=None) if told["WITH_DROPOUT"] else blocks


def _walk(kernel: Any, told: Told, longest: int, blocks: Blocks, *, held: str, step: str) -> None:
    """Launches for texts of up to `longest` pieces. held, step: the kernel's names for rows."""
    blocks = _blocks(blocks, told, longest)
    n_blocks = -(-longest // blocks.held)
    n_texts = len(told["KEY_BOUNDS"]) - 1
    sizes = {held: blocks.held, step: blocks.step, "n_blocks": n_blocks}
    _launch(
        kernel, n_texts * n_blocks, told, **sizes,
        num_warps=blocks.n_warps, num_stages=blocks.n_stages, maxnreg=blocks.most_registers,
    )  # fmt: skip
