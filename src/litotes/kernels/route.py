"""Where every text's pieces lie in every layer, known before the pass begins.

How many pieces of a text go on after a layer follows from its length and the plan alone. So the
host sends pieces and lengths in one copy, one launch writes all boundaries and which program does
what, and nothing on the way waits for the device.

    stage      the layers between two removals: one set of boundaries
    bucket     tensors of a fixed number of rows, whatever the texts: what is left over belongs to
               no text
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import triton
from torch import Tensor

from litotes.encoder.attention.weighting import LONGEST
from litotes.encoder.layout import Plan, round_share
from litotes.kernels.selection import lay_out_stages
from litotes.kernels.tiles import (
    Numbers,
    Shape,
    Tiles,
    first_shapes,
    most_tiles,
    shapes_for,
)

ALIGNED = 16
"""Every part of the block begins at a multiple of so many numbers: kernels read aligned memory
faster, and are compiled once for it.
"""


@dataclass(frozen=True)
class Sizes:
    """The room of a route: pieces, texts, and pieces of one text."""

    n_pieces: int
    n_texts: int
    longest: int


@dataclass(frozen=True)
class RouteOptions:
    """The options that decide a route besides the texts.

    rule: the name of the weighting's rule; shift: its empty rows before a text's first query.
    firsts_only: whether the last layer computes first pieces alone. trains: with a backward pass.
    halves: affinities may be held in half precision.
    """

    plan: Plan
    rule: str = "softmax"
    shift: int = 0
    fuse: bool = False
    firsts_only: bool = False
    trains: bool = False
    halves: bool = False

    @cached_property
    def stage_before(self) -> tuple[int, ...]:
        """The stage whose pieces come into each layer, and what is left after the last."""
        stages, share = [0], 1.0
        for after in self.plan.pieces:
            stages.append(stages[-1] + (after != share))
            share = after
        return tuple(stages)

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of a text that is left in each stage."""
        by_stage = dict(zip(self.stage_before[1:], self.plan.pieces, strict=True))
        return (1.0, *(by_stage[stage] for stage in sorted(by_stage) if stage > 0))

    @cached_property
    def counts(self) -> Numbers:
        """The number of pieces left of a text in each stage by its length, fused ones apart.

        (stage, length)
        """
        by_length = [
            [round_share(share, n) for n in range(1, LONGEST + 1)] for share in self.shares
        ]
        return np.array([[0, *counts] for counts in by_length], dtype=np.int32)

    def n_left(self, lengths: Numbers) -> Numbers:
        """Counts the pieces left of each text in each stage, fused ones included.

        (stage, text)
        """
        left = self.counts[:, lengths]
        if self.fuse:
            for stage in range(1, len(left)):
                left[stage] += left[stage - 1] > left[stage]
        return left


@dataclass(frozen=True)
class StageSize:
    """The room of a stage. n_tiles: of each shape."""

    n_pieces: int
    n_slots: int
    shapes: tuple[Shape, ...]
    n_tiles: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """One set of boundaries on the device.

    bounds: (text + 1,); n_tiles, kept (pieces but for fused ones): (text,)
    """

    n_pieces: int
    n_slots: int
    bounds: Tensor
    n_tiles: Tensor
    kept: Tensor
    tiles: tuple[Tiles, ...]


@dataclass(frozen=True)
class Route:
    """The stages, and the texts themselves: pieces, positions and segments are (piece,).

    block: where all of it lies; counts, stage_numbers: what `lay_out_stages` reads besides.
    first_bounds: of first pieces alone; first_tiles: the tiles they ask with in the last layer.
    """

    options: RouteOptions
    n_texts: int
    block: Tensor
    lengths_at: int
    counts: Tensor
    stage_numbers: Tensor
    pieces: Tensor
    positions: Tensor
    segments: Tensor
    stages: tuple[Stage, ...]
    first_bounds: Tensor
    first_tiles: tuple[Tiles, ...]

    @property
    def layout(self) -> Stage:
        """The boundaries that everything begins with."""
        return self.stages[0]

    def lay_out(self) -> None:
        """Writes boundaries and tiles, from the lengths, on the device."""
        n_stages, n_numbers = self.stage_numbers.shape
        lay_out_stages[(n_stages,)](
            self.block, self.counts, self.stage_numbers, self.lengths_at, self.n_texts,
            TEXTS=max(32, triton.next_power_of_2(self.n_texts)), N_COUNTS=self.counts.shape[1],
            N_SHAPES=(n_numbers - 5) // 5, N_NUMBERS=n_numbers, SHIFT=self.options.shift,
            FUSE=self.options.fuse, num_warps=8,
        )  # fmt: skip

    def into(self, layer: int) -> Stage:
        """The stage whose pieces come into a layer."""
        return self.stages[self.options.stage_before[layer]]

    def removes(self, layer: int) -> bool:
        """Tells whether pieces leave after the attention of a layer."""
        return self.options.stage_before[layer + 1] != self.options.stage_before[layer]


class RoutePlan:
    """Writes the block of numbers for texts, and reads it on the device."""

    def __init__(self, options: RouteOptions, sizes: Sizes, stages: Sequence[StageSize]) -> None:
        self.options, self.sizes, self.stages = options, sizes, tuple(stages)
        self.first_shapes: tuple[Shape, ...] = ()
        if options.firsts_only:
            longest = self.stages[-1].shapes[-1].span
            self.first_shapes = first_shapes(
                options.rule, min(longest, sizes.longest), trains=options.trains
            )

    @classmethod
    def for_bucket(cls, options: RouteOptions, sizes: Sizes) -> RoutePlan:
        """Room for any texts that `n_fitting` lets through."""
        stages, rows = [], sizes.n_pieces
        for share in options.shares:
            fused = sizes.n_texts if options.fuse and share < 1 else 0
            rows = min(rows + fused, -(-(int(share * sizes.n_pieces) + fused) // 64) * 64)
            longest = round_share(share, sizes.longest) + (fused > 0)
            stages.append(_stage_size(options, sizes, rows, longest))
        return cls(options, sizes, stages)

    @classmethod
    def for_texts(cls, options: RouteOptions, lengths: Sequence[int]) -> RoutePlan:
        """Room for these texts and nothing more."""
        counts = np.array(lengths, dtype=np.int32)
        sizes = Sizes(int(counts.sum()), len(counts), int(counts.max()))
        stages = [
            _stage_size(options, sizes, int(left.sum()), int(left.max()))
            for left in options.n_left(counts)
        ]
        return cls(options, sizes, stages)

    def n_fitting(self, lengths: Numbers) -> int:
        """Counts the texts, from the first on, that fit into the bucket together."""
        lengths = lengths[: self.sizes.n_texts]
        totals = np.cumsum(self.options.n_left(lengths), axis=1)  # (stage, text)
        room = np.array([stage.n_pieces for stage in self.stages])
        return int((totals <= room[:, None]).all(axis=0).sum())

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        """Begin and end of each part of the block: pieces, positions, segments, lengths; of each
        stage bounds, n_tiles, kept and the tiles of each shape; then the tiles of first pieces.
        """
        texts = self.sizes.n_texts
        lengths = [self.sizes.n_pieces] * 3 + [texts]
        for stage in self.stages:
            lengths += [texts + 1, texts, texts, *(2 * n for n in stage.n_tiles)]
        lengths += [2 * texts] * len(self.first_shapes)
        parts, begin = [], 0
        for length in lengths:
            parts.append((begin, begin + length))
            begin += -(-length // ALIGNED) * ALIGNED
        return parts

    @property
    def n_numbers(self) -> int:
        """The length of the block."""
        return -(-self._parts[-1][1] // ALIGNED) * ALIGNED

    @property
    def n_sent(self) -> int:
        """The length of what the host sends of the block."""
        return self._parts[3][1]

    def write(
        self, pieces: Numbers, segments: Numbers | None, lengths: Numbers, out: Numbers
    ) -> None:
        """Writes what comes from the host, for texts laid end to end, into `out`."""
        n_pieces = len(pieces)
        out[: self.n_sent] = 0
        starts = np.cumsum(lengths) - lengths
        parts: list[Numbers | None] = [
            pieces,
            np.arange(n_pieces, dtype=np.int32) - np.repeat(starts, lengths),
            segments,
            lengths,
        ]
        for (begin, _), part in zip(self._parts, parts, strict=False):
            if part is not None:
                out[begin : begin + len(part)] = part

    def read(self, block: Tensor) -> Route:
        """The route, as views of the block on its device; `lay_out` has to follow."""
        parts = (block[begin:end] for begin, end in self._parts)
        pieces, positions, segments, _ = next(parts), next(parts), next(parts), next(parts)
        stages = []
        for stage in self.stages:
            bounds, n_tiles, kept = next(parts), next(parts), next(parts)
            tiles = tuple(Tiles(shape, next(parts).view(-1, 2)) for shape in stage.shapes)
            stages.append(Stage(stage.n_pieces, stage.n_slots, bounds, n_tiles, kept, tiles))
        n_texts, device = self.sizes.n_texts, block.device
        return Route(
            self.options,
            n_texts,
            block=block,
            lengths_at=self._parts[3][0],
            counts=torch.from_numpy(self.options.counts).to(device),
            stage_numbers=torch.from_numpy(self._stage_numbers()).to(device),
            pieces=pieces,
            positions=positions,
            segments=segments,
            stages=tuple(stages),
            first_bounds=torch.arange(n_texts + 1, dtype=torch.int32, device=device),
            first_tiles=tuple(Tiles(shape, next(parts).view(-1, 2)) for shape in self.first_shapes),
        )

    def _stage_numbers(self) -> Numbers:
        """Lists the numbers that each program of `lay_out_stages` needs."""
        most = max(len(self.first_shapes), *(len(stage.shapes) for stage in self.stages))
        begins = iter([begin for begin, _ in self._parts[4:]])
        programs = []
        for number, stage in enumerate(self.stages):
            own = [number, 0, next(begins), next(begins), next(begins)]
            programs.append(own + _shape_numbers(stage.shapes, stage.n_tiles, begins, most))
        if self.first_shapes:
            room = (self.sizes.n_texts,) * len(self.first_shapes)
            own = [len(self.stages) - 1, 1, 0, 0, 0]
            programs.append(own + _shape_numbers(self.first_shapes, room, begins, most))
        return np.array(programs, dtype=np.int32)


def _stage_size(options: RouteOptions, sizes: Sizes, n_pieces: int, longest: int) -> StageSize:
    longest = min(longest, LONGEST)
    shapes = shapes_for(
        options.rule,
        longest,
        n_pieces=sizes.n_pieces,
        trains=options.trains,
        halves=options.halves,
    )
    tiles = most_tiles(n_pieces, sizes.n_texts, shapes, shift=options.shift)
    n_slots = max(-(-(min(longest, shape.span) + options.shift) // shape.rows) for shape in shapes)
    return StageSize(n_pieces, n_slots, shapes, tuple(tiles))


def _shape_numbers(
    shapes: Sequence[Shape], room: Sequence[int], begins: Iterator[int], most: int
) -> list[int]:
    numbers: list[int] = []
    shorter = 0
    for shape, n_tiles in zip(shapes, room, strict=True):
        numbers += [next(begins), n_tiles, shape.span, shorter, shape.rows]
        shorter = shape.span
    # shapes that are not there take no texts
    return numbers + [0, 0, 0, 0, 1] * (most - len(shapes))
