"""Which program does what: tiles of queries, laid out by the texts' real lengths.

A tile is some neighbouring queries of one text against all its keys. Texts of similar length are
launched together, so that a short text does not pay for the rows of a long one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Shape:
    """Texts of up to `span` keys, `rows` queries a tile, and the warps that work on it.

    block: keys that a program looks at together: all of them, or else it walks from block to block,
    for softmax in float32 (`walk_keys`), for others in half precision (long_rows.py).
    """

    span: int
    rows: int
    n_warps: int
    block: int = 0

    @property
    def walks(self) -> bool:
        return 0 < self.block < self.span


SHORT = (Shape(64, 64, 4), Shape(128, 64, 4))
LONG = Shape(1024, 64, 4, block=64)
WALKED = (*SHORT, LONG)
WHOLE = (*SHORT, Shape(256, 64, 8), Shape(512, 32, 4), Shape(1024, 16, 4))
"""For softmax, which may walk, and for weightings that look at a whole row several times. Measured
on an H200: 64 numbers a thread leave room for everything else.
"""

HALVES = (*SHORT, Shape(256, 64, 8), Shape(512, 64, 4, block=64), Shape(1024, 16, 4))
"""The same where affinities may be held in half precision, for `PAIRED` rules."""

PAIRED = ("squares", "powers", "top_k")
PAIRED_IN_TRAINING = ("squares", "top_k")
"""Rules whose long rows are held as pairs of halves: without a gradient, and with one. For `powers`
a gradient's error would be ten times as large.
"""

FEW_PIECES = 2048
"""Up to here a launch costs more than what a shape of its own saves."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of one launch. numbers: (tile, 2), a text and which of its tiles; −1: none."""

    shape: Shape
    numbers: Tensor


FIRSTS_WALKED = (Shape(128, 16, 2), Shape(1024, 16, 4, block=128))
FIRSTS_WHOLE = (Shape(128, 16, 2), Shape(512, 16, 4), Shape(1024, 16, 4))
"""For one query a text: products have at least 16 rows."""


def shapes_for(
    rule: str,
    longest: int,
    *,
    n_pieces: int | None = None,
    trains: bool = False,
    halves: bool = False,
) -> tuple[Shape, ...]:
    """The shapes that texts of up to so many pieces need.

    n_pieces: of all texts together. trains: a backward pass follows. halves: affinities may be
    held in half precision, as queries and keys are.
    """
    if halves and rule in (PAIRED_IN_TRAINING if trains else PAIRED):
        return _up_to(longest, HALVES)
    if rule != "softmax" or trains:
        return _up_to(longest, WHOLE)
    if n_pieces is not None and n_pieces <= FEW_PIECES and longest > SHORT[0].span:
        return (LONG,)
    return _up_to(longest, WALKED)


def first_shapes(rule: str, longest: int, *, trains: bool = False) -> tuple[Shape, ...]:
    """The same for queries of first pieces alone."""
    return _up_to(longest, FIRSTS_WALKED if rule == "softmax" and not trains else FIRSTS_WHOLE)


def _up_to(longest: int, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    enough = next(place for place, shape in enumerate(shapes) if longest <= shape.span)
    return shapes[: enough + 1]


def tile_numbers(
    n_queries: Numbers, n_keys: Numbers, shapes: tuple[Shape, ...], *, shift: int = 0
) -> list[Numbers]:
    """The tiles of texts with so many queries and keys, one array (tile, 2) for each shape.

    shift: empty rows before a text's first query.
    """
    kind = np.searchsorted([shape.span for shape in shapes], n_keys)
    numbers = []
    for place, shape in enumerate(shapes):
        texts = np.flatnonzero((kind == place) & (n_keys > 0))
        n_tiles = -(-(n_queries[texts] + shift) // shape.rows)
        ends = np.cumsum(n_tiles)
        slots = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - n_tiles, n_tiles)
        numbers.append(np.stack([np.repeat(texts, n_tiles), slots], axis=1).astype(np.int32))
    return numbers


def most_tiles(
    n_pieces: int, n_texts: int, shapes: tuple[Shape, ...], *, shift: int = 0
) -> list[int]:
    """Bounds how many tiles of each shape so many pieces in so many texts can need."""
    most = []
    shortest = 1
    for shape in shapes:
        texts = min(n_texts, max(1, n_pieces // shortest))
        of_one = -(-(shape.span + shift) // shape.rows)
        most.append(min(texts * of_one, texts + (n_pieces + texts * shift) // shape.rows))
        shortest = shape.span + 1
    return most


# From the texts' lengths to all boundaries and tiles, in one launch: a program for each stage.
