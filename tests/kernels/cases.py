"""Attention over packed texts by the kernels and by the plain path in float64, side by side.

Used by the tests here, in Triton's interpreter, and by a script on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.top_k import BlockTopK, TopK
from litotes.encoder.attention.weighting import LONGEST, RowRule, Softmax, Weighting, kept_counts
from litotes.kernels.attention import Attended, DistanceBias, Packed, Wanted, packed_attention
from litotes.kernels.tiles import Shape, Tiles, shapes_for, tile_numbers

LENGTHS = (1, 5, 33)
N_BUCKETS = 6


@dataclass(frozen=True)
class Case:
    """What is attended to, and how.

    first_only: each text's first piece alone asks. n_nobody: rows at the end that belong to no
    text. alive: each text's attention heads as bits. spread: of queries and keys. halves:
    affinities of long texts are held in half precision. quarters: queries and keys are such that
    half precision shows their affinities, for a width of 16 or 64: everyone chooses the same keys.
    shape: of all tiles; None: as the texts' lengths and the rule want it.
    """

    rule: str
    lengths: Sequence[int] = LENGTHS
    n_heads: int = 2
    head_width: int = 32
    with_bias: bool = False
    alive: tuple[int, ...] | None = None
    first_only: bool = False
    n_nobody: int = 0
    wanted: str = "none"
    spread: float = 1.5
    halves: bool = False
    quarters: bool = False
    shape: Shape | None = None


def all_rules(n_heads: int, device: torch.device) -> dict[str, tuple[RowRule, Weighting]]:
    """Each rule of the kernels and the weighting that defines it."""
    kept = kept_counts(0.5, device)
    some = torch.linspace(1.15, 1.8, n_heads)
    learned = Entmax(n_heads, alpha="learned").double()
    learned.a.data = torch.logit(some.double() - 1)
    return {
        "softmax": (RowRule("softmax"), Softmax(n_heads)),
        "squares": (RowRule("squares"), Entmax(n_heads, alpha=1.5)),
        "lines": (RowRule("lines"), Entmax(n_heads, alpha=2.0)),
        "powers": (
            RowRule("powers", alpha=torch.full((n_heads,), 1.3, device=device)),
            Entmax(n_heads, alpha=1.3),
        ),
        "learned": (RowRule("powers", alpha=some.to(device).requires_grad_()), learned),
        "top_k": (RowRule("top_k", kept=kept), TopK(n_heads, sparsity=0.5)),
        "block_top_k": (
            RowRule("block_top_k", kept=kept, block=4),
            BlockTopK(n_heads, sparsity=0.5, block=4),
        ),
    }


def heads_for(rule: str) -> int:
    """How many attention heads show what a rule does."""
    return 2 if rule == "learned" else 1


RULES = ("softmax", "squares", "lines", "powers", "learned", "top_k", "block_top_k")


@dataclass(frozen=True)
class Inputs:
    """stacked: queries, keys and values, (piece, 3, attention_head, head_width).

    query: where only first pieces ask, (text, attention_head, head_width).
    """

    stacked: Tensor
    query: Tensor | None
    bias: DistanceBias | None
    bounds: list[int]

    @property
    def learned(self) -> list[Tensor]:
        """What gets a gradient."""
        some = [self.stacked, self.query, None if self.bias is None else self.bias.by_bucket]
        return [tensor for tensor in some if tensor is not None]


def make_inputs(case: Case, device: torch.device, dtype: torch.dtype, seed: int = 0) -> Inputs:
    draw = torch.Generator().manual_seed(seed)
    bounds = [0, *np.cumsum(case.lengths).tolist()]
    shape = (bounds[-1] + case.n_nobody, 3, case.n_heads, case.head_width)
    stacked = torch.randn(shape, generator=draw)
    stacked[:, :2] *= case.spread
    if case.quarters:
        stacked[:, :2] = (4 * stacked[:, :2]).round() / 4
    query = stacked[:, 0][bounds[:-1]] if case.first_only else None
    bias = None
    if case.with_bias:
        distance = torch.arange(-LONGEST, LONGEST + 1)
        # places with gaps, as after a removal
        origin = torch.cat([torch.arange(n) * 3 // 2 for n in (*case.lengths, case.n_nobody)])
        by_bucket = torch.randn(N_BUCKETS, case.n_heads, generator=draw)
        bias = DistanceBias(
            (distance + LONGEST).remainder(N_BUCKETS).int().to(device),
            by_bucket.to(device).requires_grad_(),
            origin.int().to(device),
        )
    leaf = {"device": device, "dtype": dtype}
    return Inputs(
        stacked.to(**leaf).requires_grad_(),
        None if query is None else query.to(**leaf).requires_grad_(),
        bias,
        bounds,
    )


def tiles_of(
    n_queries: Sequence[int],
    n_keys: Sequence[int],
    device: torch.device,
    shift: int = 0,
    *,
    rule: str = "squares",
    halves: bool = False,
    shape: Shape | None = None,
) -> list[Tiles]:
    shapes = shapes_for(rule, max(n_keys, default=1), trains=not halves, halves=halves)
    if shape is not None:
        shapes = (shape,)
    numbers = tile_numbers(
        np.array(n_queries, np.int32), np.array(n_keys, np.int32), shapes, shift=shift
    )
    return [
        Tiles(shape, torch.from_numpy(some).to(device))
        for shape, some in zip(shapes, numbers, strict=True)
    ]


def run_kernels(
    case: Case,
    inputs: Inputs,
    rule: RowRule,
    *,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Attended:
    device, n_texts = inputs.stacked.device, len(case.lengths)
    bounds = torch.tensor(inputs.bounds, dtype=torch.int32, device=device)
    query, key, value = inputs.stacked.unbind(1)
    query_bounds, n_queries, stacked = bounds, case.lengths, inputs.stacked
    if inputs.query is not None:
        query, n_queries = inputs.query, [1] * n_texts
        query_bounds = torch.arange(n_texts + 1, dtype=torch.int32, device=device)
        stacked = None
    alive = None if case.alive is None else torch.tensor(case.alive, device=device)
    shift = rule.block - 1
    options = {"rule": rule.name, "halves": case.halves, "shape": case.shape}
    tiles = tiles_of(n_queries, case.lengths, device, shift, **options)
    packed = Packed(query, key, value, query_bounds, bounds, tiles, inputs.bias, alive)
    wanted = Wanted(case.wanted, case.wanted != "none", n_slots=n_slots(case, rule))
    return packed_attention(
        packed,
        rule,
        wanted=wanted,
        dropout=dropout,
        seed=seed,
        stacked=stacked,
    )


def n_slots(case: Case, rule: RowRule) -> int:
    return max((n_tiles(case, n, rule) for n in case.lengths), default=1)


def n_tiles(case: Case, length: int, rule: RowRule) -> int:
    """How many tiles of queries a text has."""
    return -(-(length + rule.block - 1) // shape_of(case, length).rows)


def shape_of(case: Case, length: int) -> Shape:
    return case.shape or shapes_for("squares", length, halves=case.halves)[-1]


def run_plain(
    case: Case,
    inputs: Inputs,
    weighting: Weighting,
    drop: Callable[[Tensor], Tensor] = lambda weights: weights,
) -> tuple[Tensor, list[Tensor]]:
    """The same, text by text: mixed, zeros in rows of nobody, and each text's weights.

    drop: what dropout does to weights. (attention_head, query, key)
    """
    n_queries = len(case.lengths) if case.first_only else len(inputs.stacked)
    mixed = inputs.stacked.new_zeros(n_queries, case.n_heads, case.head_width)
    rows, all_weights = [], []
    for text, (start, end) in enumerate(zip(inputs.bounds, inputs.bounds[1:], strict=False)):
        query, key, value = inputs.stacked[start:end].permute(1, 2, 0, 3)[:, None]
        if inputs.query is not None:
            query = inputs.query[None, text, :, None]
        bias = None if inputs.bias is None else plain_bias(inputs.bias, start, end, query.shape[2])
        _, weights = weighting.attend_with_weights(query, key, value, bias=bias)
        weights = weights[0]
        if case.alive is not None:
            heads = torch.arange(case.n_heads, device=mixed.device)
            weights = weights * ((case.alive[text] >> heads) & 1)[:, None, None]
        rows.append((drop(weights) @ value[0]).transpose(0, 1))
        all_weights.append(weights)
    if rows:
        nobody = mixed[sum(map(len, rows)) :]
        mixed = torch.cat([*rows, nobody])
    return mixed, all_weights


def plain_bias(bias: DistanceBias, start: int, end: int, n_queries: int) -> Tensor:
    """(1, attention_head, query, key)"""
    origin = bias.origin[start:end]
    ahead = origin[None, :] - origin[:n_queries, None]
    return bias.by_bucket[bias.buckets[ahead.long() + LONGEST].long()].permute(2, 0, 1)[None]


def in_double(inputs: Inputs) -> Inputs:
    """The same numbers in float64, as leaves of their own."""

    def leaf(tensor: Tensor) -> Tensor:
        return tensor.detach().double().requires_grad_()

    bias = inputs.bias
    return replace(
        inputs,
        stacked=leaf(inputs.stacked),
        query=None if inputs.query is None else leaf(inputs.query),
        bias=None if bias is None else replace(bias, by_bucket=leaf(bias.by_bucket)),
    )


def forward_error(case: Case, device: torch.device, dtype: torch.dtype) -> float:
    """The largest error of what comes out, of what keys received and of head sizes."""
    rule, weighting = all_rules(case.n_heads, device)[case.rule]
    inputs = make_inputs(case, device, dtype)
    with torch.no_grad():
        out = run_kernels(case, inputs, rule)
        mixed, weights = run_plain(case, in_double(inputs), weighting.to(device))
    n_live = len(mixed) - case.n_nobody
    errors = [largest_gap(out.mixed[:n_live], mixed[:n_live])]
    if out.received is None or out.head_size is None:
        return max(errors)
    for text, (start, end) in enumerate(zip(inputs.bounds, inputs.bounds[1:], strict=False)):
        used = 1 if case.first_only else n_tiles(case, end - start, rule)
        received = weights[text].sum(1)  # (attention_head, key)
        if case.wanted == "value":
            received = received * inputs.stacked[start:end, 2].double().norm(dim=-1).T
        errors.append(largest_gap(out.received[:used, :, start:end].sum(0), received))
        rows = slice(text, text + 1) if case.first_only else slice(start, end)
        size = out.mixed[rows].double().abs().sum((0, 2))
        errors.append(relative_gap(out.head_size[text, :used].sum(0), size))
    return max(errors)


def gradient_error(
    case: Case, device: torch.device, dtype: torch.dtype, *, dropout: float = 0.0
) -> float:
    """The largest error of a gradient, as a share of that gradient's largest number."""
    seed = torch.tensor([3], device=device)
    mask = dropout_mask(case, seed, dropout).double() if dropout else 1.0
    rule, weighting = all_rules(case.n_heads, device)[case.rule]
    inputs = make_inputs(case, device, dtype)
    exact = in_double(inputs)
    out = run_kernels(case, inputs, rule, dropout=dropout, seed=seed)
    mixed, _ = run_plain(case, exact, weighting.to(device), lambda weights: weights * mask)
    draw = torch.Generator().manual_seed(1)
    to_mixed = torch.randn(mixed.shape, generator=draw).to(device=device, dtype=dtype)
    out.mixed.backward(to_mixed)
    mixed.backward(to_mixed.double())
    pairs = list(zip(inputs.learned, exact.learned, strict=True))
    errors = [relative_gap(got.grad, wanted.grad) for got, wanted in pairs]
    if case.rule == "learned":
        # by α itself, not by what α is made of
        slope = (weighting.alpha - 1) * (2 - weighting.alpha)
        errors.append(relative_gap(rule.alpha.grad, weighting.a.grad / slope.detach()))
    return max(errors)


def dropout_mask(case: Case, seed: Tensor, dropout: float) -> Tensor:
    """What becomes of a weight of 1, (attention_head, query, key): keys are all the same, and each
    value says which one it is. For one text, no longer than a value is wide.
    """
    (length,) = case.lengths
    inputs = make_inputs(case, seed.device, torch.float32)
    stacked = inputs.stacked.detach()
    stacked[:, 1] = 0.0
    stacked[:, 2] = torch.eye(length, case.head_width, device=seed.device)[:, None]
    out = run_kernels(case, inputs, RowRule("softmax"), dropout=dropout, seed=seed)
    return out.mixed.detach().transpose(0, 1)[..., :length] * length


def largest_gap(got: Tensor, wanted: Tensor) -> float:
    return (got.double() - wanted.double()).abs().max().item() if got.numel() else 0.0


def relative_gap(got: Tensor | None, wanted: Tensor | None) -> float:
    assert got is not None
    assert wanted is not None
    return largest_gap(got, wanted) / max(wanted.abs().max().item(), 1e-30)
