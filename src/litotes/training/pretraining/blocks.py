"""The texts a language model reads: lines cut to what fits, or joined up to it; pairs of halves.

A line that is too long becomes several blocks; nothing is left out. With joined lines a block holds
as many lines of a document as fit, whole ones: FULL-SENTENCES within documents (Liu et al. 2019,
arXiv 1907.11692, §4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from litotes.core.errors import UserError
from litotes.core.values import MISSING
from litotes.encoder.tokenizer import Frame
from litotes.training.pretraining.piece_store import PieceStore

FOLLOWS, RANDOM = 0, 1
"""Of a pair: the second half follows the first in its document, or is from another. The numbers are
those of `transformers`.
"""

MOST_HELD_OUT = 200_000
"""Pieces to measure perplexity on, at most: more would take time and tell nothing new."""


@dataclass(frozen=True)
class FramedText:
    """What the encoder reads, before anything is masked. All (piece,).

    continues: whether a piece continues a word. follows: FOLLOWS, RANDOM or MISSING.
    """

    ids: NDArray[np.int64]
    continues: NDArray[np.bool_]
    segments: NDArray[np.int64]
    follows: int = MISSING


@dataclass(frozen=True)
class Blocks:
    """Blocks of a store: where each begins and ends, its document, the key of its first line.

    cuts: where any line, or part of a line that is too long, begins. All but that: (block,)
    """

    store: PieceStore
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    documents: NDArray[np.int64]
    keys: NDArray[np.int64]
    cuts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def n_pieces(self) -> int:
        return int((self.ends - self.starts).sum())

    def where(self, chosen: NDArray[np.bool_]) -> Blocks:
        """The chosen ones. (block,)"""
        return Blocks(
            self.store,
            self.starts[chosen],
            self.ends[chosen],
            self.documents[chosen],
            self.keys[chosen],
            self.cuts,
        )

    def hold_out(self, share: float) -> tuple[Blocks, Blocks]:
        """The rest, and about `share` of the pieces: those whose keys' hashes are the smallest.

        Blocks that begin with the same line are on the same side.
        """
        order = np.argsort(self.keys, kind="stable")
        n_seen = np.cumsum((self.ends - self.starts)[order])
        n_wanted = min(share * self.n_pieces, MOST_HELD_OUT)
        last = min(int(np.searchsorted(n_seen, n_wanted)), len(self) - 1)
        held = self.keys <= self.keys[order[last]]
        if held.all():
            raise UserError(
                "There are too few different texts to hold some out. Give more texts, or lower"
                " model.max_pieces."
            )
        return self.where(~held), self.where(held)

    def count_pieces(self, n_vocabulary: int) -> NDArray[np.int64]:
        """How often each piece of the vocabulary occurs. (piece of the vocabulary,)"""
        counts = np.zeros(n_vocabulary, dtype=np.int64)
        spans = list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))
        for first in range(0, len(spans), _AT_ONCE):
            some = [self.store.read(*span)[0] for span in spans[first : first + _AT_ONCE]]
            counts += np.bincount(np.concatenate(some), minlength=n_vocabulary)
        return counts


_Row = tuple[int, int, int, int]
"""Start, end, document and key of a block, or of a part of one."""
_ROW = np.dtype((np.int64, 4))
_AT_ONCE = 4096


def make_blocks(store: PieceStore, room: int, *, join_lines: bool) -> Blocks:
    """All blocks of at most `room` pieces."""
    parts = _parts(store, room)
    rows = _join(parts, room) if join_lines else parts
    starts, ends, documents, keys = np.fromiter(rows, dtype=_ROW).T
    cuts = np.fromiter((part[0] for part in _parts(store, room)), dtype=np.int64)
    return Blocks(store, starts, ends, documents, keys, cuts)


def _parts(store: PieceStore, room: int) -> Iterator[_Row]:
    """Lines, and parts of those that are too long."""
    lines = np.stack([store.starts, store.ends, store.documents, store.keys], axis=1)
    for first in range(0, len(lines), _AT_ONCE):
        for start, end, document, key in lines[first : first + _AT_ONCE].tolist():
            for cut in range(start, end, room):
                yield cut, min(cut + room, end), document, key


def _join(parts: Iterator[_Row], room: int) -> Iterator[_Row]:
    """As many parts of a document together as fit; a block has the key of its first."""
    start, end, document, key = next(parts)
    for part in parts:
        if part[2] == document and part[1] - start <= room:
            end = part[1]
            continue
        yield start, end, document, key
        start, end, document, key = part
    yield start, end, document, key


@dataclass(frozen=True)
class TextReader:
    """Blocks with special pieces around them."""

    blocks: Blocks
    frame: Frame

    def read(self, place: int, generator: Generator) -> FramedText:
        """A block as one text; nothing is drawn."""
        blocks = self.blocks
        ids, continues = blocks.store.read(blocks.starts[place], blocks.ends[place])
        return frame_text(self.frame, ids, continues)


@dataclass(frozen=True)
class PairReader:
    """Blocks as pairs: a block's lines are divided, and in half of the pairs the second half is
    that of a block from another document (Devlin et al. 2019, arXiv 1810.04805, §3.1, task 2).

    A block of a single line is read as one text: nothing follows in it.
    """

    blocks: Blocks
    frame: Frame
    single: Frame
    room: int

    def __post_init__(self) -> None:
        if len(np.unique(self.blocks.documents)) < 2:
            raise UserError(
                "objective.next_sentence needs blocks of at least two documents, to learn from and"
                " held out: divide the text by blank lines, give more of it, or raise"
                " data.held_out."
            )

    def read(self, place: int, generator: Generator) -> FramedText:
        blocks = self.blocks
        start, end = int(blocks.starts[place]), int(blocks.ends[place])
        middle = self._cut(start, end, generator)
        if middle is None:
            return frame_text(self.single, *blocks.store.read(start, end))
        follows = RANDOM if _draw(2, generator) else FOLLOWS
        second = (middle, end) if follows == FOLLOWS else self._other(place, generator)
        first_ids, first_continues = blocks.store.read(start, middle)
        left = self.room - len(first_ids)
        second_ids, second_continues = blocks.store.read(*second)
        return frame_pair(
            self.frame,
            (first_ids, first_continues),
            (second_ids[:left], second_continues[:left]),
            follows,
        )

    def _other(self, place: int, generator: Generator) -> tuple[int, int]:
        """The second half of a block from another document."""
        blocks = self.blocks
        while True:
            other = _draw(len(blocks), generator)
            if blocks.documents[other] != blocks.documents[place]:
                break
        start, end = int(blocks.starts[other]), int(blocks.ends[other])
        middle = self._cut(start, end, generator)
        return (start if middle is None else middle), end

    def _cut(self, start: int, end: int, generator: Generator) -> int | None:
        """Where one of the lines inside begins; None where there is only one."""
        first, last = np.searchsorted(self.blocks.cuts, [start + 1, end])
        if first == last:
            return None
        return int(self.blocks.cuts[first + _draw(int(last - first), generator)])


Reader = TextReader | PairReader

_Content = tuple[NDArray[np.int64], NDArray[np.bool_]]


def frame_text(frame: Frame, ids: NDArray[np.int64], continues: NDArray[np.bool_]) -> FramedText:
    """One text between its special pieces."""
    framed = np.array([*frame.before, *ids, *frame.after], dtype=np.int64)
    flags = np.zeros(len(framed), dtype=np.bool_)
    flags[len(frame.before) :][: len(ids)] = continues
    return FramedText(framed, flags, np.zeros_like(framed))


def frame_pair(frame: Frame, first: _Content, second: _Content, follows: int) -> FramedText:
    """Two texts between their special pieces."""
    n_first = len(frame.before) + len(first[0]) + len(frame.between)
    ids = [frame.before, first[0], frame.between, second[0], frame.after]
    framed = np.concatenate([np.array(part, dtype=np.int64) for part in ids])
    flags = np.zeros(len(framed), dtype=np.bool_)
    flags[len(frame.before) :][: len(first[0])] = first[1]
    flags[n_first:][: len(second[0])] = second[1]
    segments = np.zeros_like(framed)
    segments[n_first:] = frame.second_segment
    return FramedText(framed, flags, segments, follows)


def _draw(n: int, generator: Generator) -> int:
    return int(torch.randint(n, (), generator=generator))
