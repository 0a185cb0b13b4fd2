"""Where every text's pieces lie in every layer, known before the pass begins.

How many pieces of a text go on after a layer follows from its length and the plan alone. So the
host writes all boundaries, and which program does what, into one block of numbers; it travels in
one copy, and nothing on the way waits for the device.

    stage      the layers between two removals: one set of boundaries
    bucket     tensors of a fixed number of rows, whatever the texts: what is left over belongs to
               nobody
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litotes.attention.kernels.tiles import (
    Numbers,
    Shape,
    Tiles,
    first_shapes,
    most_tiles,
    shapes_for,
    tile_numbers,
    tiles_of_text,
)
from litotes.attention.pruning import Plan

ALIGNED = 16
"""Every part of the block begins at a multiple of so many numbers: kernels read aligned memory
faster, and are compiled once for it.
"""


@dataclass(frozen=True)
class Sizes:
    """How much a route has room for: pieces, texts, and pieces of one text."""

    n_pieces: int
    n_texts: int
    longest: int


@dataclass(frozen=True)
class RouteOptions:
    """What decides a route besides the texts.

    rule: the name of the weighting's rule; shift: its empty rows before a text's first query.
    firsts_only: whether the last layer computes first pieces alone. trains: with a backward pass.
    """

    plan: Plan
    rule: str = "softmax"
    shift: int = 0
    fuse: bool = False
    firsts_only: bool = False
    trains: bool = False

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
        """Of each stage, what is left of a text."""
        by_stage = dict(zip(self.stage_before[1:], self.plan.pieces, strict=True))
        return (1.0, *(by_stage[stage] for stage in sorted(by_stage) if stage > 0))

    def counts(self, lengths: Numbers) -> list[tuple[Numbers, Numbers]]:
        """Of each stage, how many pieces of each text are left, fused ones apart and included."""
        total = lengths
        stages = [(lengths, lengths)]
        for share in self.shares[1:]:
            real = np.maximum(1, np.floor(share * lengths + 1e-9)).astype(np.int32)
            real = np.where(lengths > 0, real, 0).astype(np.int32)
            total = (real + (total > real)).astype(np.int32) if self.fuse else real
            stages.append((real, total))
        return stages


@dataclass(frozen=True)
class StageSize:
    """How much a stage has room for. n_tiles: of each shape."""

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

    first_bounds: of first pieces alone; first_tiles: the tiles they ask with in the last layer.
    """

    options: RouteOptions
    n_texts: int
    pieces: Tensor
    positions: Tensor
    segments: Tensor
    stages: tuple[Stage, ...]
    first_bounds: Tensor
    first_tiles: tuple[Tiles, ...]

    def into(self, layer: int) -> Stage:
        """The stage whose pieces come into a layer."""
        return self.stages[self.options.stage_before[layer]]

    def removes(self, layer: int) -> bool:
        """Whether pieces leave after the attention of a layer."""
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
        """Room for any texts that `fits` lets through."""
        stages, rows = [], sizes.n_pieces
        for share in options.shares:
            fused = sizes.n_texts if options.fuse and share < 1 else 0
            rows = min(rows + fused, -(-(int(share * sizes.n_pieces) + fused) // 64) * 64)
            longest = max(1, int(share * sizes.longest + 1e-9)) + (fused > 0)
            shapes = shapes_for(options.rule, longest, trains=options.trains)
            tiles = most_tiles(rows, sizes.n_texts, shapes, shift=options.shift)
            n_slots = max(-(-(min(longest, s.span) + options.shift) // s.rows) for s in shapes)
            stages.append(StageSize(rows, n_slots, shapes, tuple(tiles)))
        return cls(options, sizes, stages)

    @classmethod
    def for_texts(cls, options: RouteOptions, lengths: Sequence[int]) -> RoutePlan:
        """Room for these texts and nothing more."""
        counts = np.array(lengths, dtype=np.int32)
        stages = []
        for _, total in options.counts(counts):
            shapes = shapes_for(options.rule, int(total.max()), trains=options.trains)
            tiles = tile_numbers(total, total, shapes, shift=options.shift)
            n_slots = int(tiles_of_text(total, total, shapes, shift=options.shift).max())
            stages.append(
                StageSize(int(total.sum()), n_slots, shapes, tuple(len(some) for some in tiles))
            )
        sizes = Sizes(int(counts.sum()), len(counts), int(counts.max()))
        return cls(options, sizes, stages)

    def n_fitting(self, lengths: Numbers) -> int:
        """How many of the texts, from the first on, fit into the bucket together."""
        lengths = lengths[: self.sizes.n_texts]
        n = len(lengths)
        for (_, total), stage in zip(self.options.counts(lengths), self.stages, strict=True):
            n = min(n, int(np.searchsorted(np.cumsum(total), stage.n_pieces, side="right")))
        return n

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        """Begin and end of each part of the block: pieces, positions, segments; of each stage
        bounds, n_tiles, kept and the tiles of each shape; then the tiles of first pieces.
        """
        texts = self.sizes.n_texts
        lengths = [self.sizes.n_pieces] * 3
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

    def write(
        self, pieces: Numbers, segments: Numbers | None, lengths: Numbers, out: Numbers
    ) -> None:
        """Writes the block for texts laid end to end into `out`."""
        texts = np.zeros(self.sizes.n_texts, dtype=np.int32)
        texts[: len(lengths)] = lengths
        n_pieces = len(pieces)
        out[:] = 0
        parts = iter(self._parts)
        begin, _ = next(parts)
        out[begin : begin + n_pieces] = pieces
        begin, _ = next(parts)
        starts = np.cumsum(lengths) - lengths
        out[begin : begin + n_pieces] = np.arange(n_pieces) - np.repeat(starts, lengths)
        begin, _ = next(parts)
        if segments is not None:
            out[begin : begin + n_pieces] = segments
        shift = self.options.shift
        for stage, (real, total) in zip(self.stages, self.options.counts(texts), strict=True):
            begin, end = next(parts)
            np.cumsum(total, out=out[begin + 1 : end])
            begin, end = next(parts)
            out[begin:end] = tiles_of_text(total, total, stage.shapes, shift=shift)
            begin, end = next(parts)
            out[begin:end] = real
            for numbers in tile_numbers(total, total, stage.shapes, shift=shift):
                _write_tiles(out[slice(*next(parts))], numbers)
        if self.first_shapes:
            one = (texts > 0).astype(np.int32)
            for numbers in tile_numbers(one, total, self.first_shapes, shift=shift):
                _write_tiles(out[slice(*next(parts))], numbers)

    def read(self, block: Tensor) -> Route:
        """The route, as views of the block on its device."""
        parts = (block[begin:end] for begin, end in self._parts)
        pieces, positions, segments = next(parts), next(parts), next(parts)
        stages = []
        for stage in self.stages:
            bounds, n_tiles, kept = next(parts), next(parts), next(parts)
            tiles = tuple(Tiles(shape, next(parts).view(-1, 2)) for shape in stage.shapes)
            stages.append(Stage(stage.n_pieces, stage.n_slots, bounds, n_tiles, kept, tiles))
        first_tiles = tuple(Tiles(shape, next(parts).view(-1, 2)) for shape in self.first_shapes)
        n_texts = self.sizes.n_texts
        first_bounds = torch.arange(n_texts + 1, dtype=torch.int32, device=block.device)
        return Route(
            self.options,
            n_texts,
            pieces,
            positions,
            segments,
            tuple(stages),
            first_bounds,
            first_tiles,
        )


def _write_tiles(part: NDArray[np.int32], numbers: Numbers) -> None:
    part[: numbers.size] = numbers.ravel()
    part[numbers.size :] = -1
