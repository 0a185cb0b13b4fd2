"""Texts given as words, read as pieces: which pieces belong to which word.

A model reads the words with a blank between them, as every tokenizer knows them. A text that is
longer than an encoder reads is read in windows that overlap, so that each word is answered where
it has words on both sides; only a single word that is too long by itself is cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.layout import Batch, Layout
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces, PieceTokenizer


@dataclass(frozen=True)
class Window:
    """Consecutive words of a text as pieces.

    first: the number of its first word in the text. answered: the numbers in the text of the words
    that are answered here. places: the pieces of each of its words, by their places in the window;
    a word that the encoder did not read, or knows no piece of, has none.
    """

    pieces: Pieces
    first: int
    answered: range
    places: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class WordPlaces:
    """Where the words of a batch are in its packed tensor of pieces.

    pieces: the places of all words' pieces, word after word, (piece of a word,); words: how many
    of them each word has; texts: how many words each text has.
    """

    pieces: Tensor
    words: Layout
    texts: Layout


@dataclass(frozen=True)
class WordBatch:
    """A batch of windows, and where their words are."""

    batch: Batch
    places: WordPlaces


def read_whole(tokenizer: PieceTokenizer, texts: Sequence[Sequence[str]]) -> list[Window]:
    """Each text as one window; what the encoder cannot read of it is cut off, and the pieces say
    so.
    """
    ranges = [range(len(words)) for words in texts]
    return _read(tokenizer, texts, ranges, ranges)


def read_windows(tokenizer: PieceTokenizer, texts: Sequence[Sequence[str]]) -> list[list[Window]]:
    """The windows of each text, in order: one, unless it is too long."""
    found = []
    for words, window in zip(texts, read_whole(tokenizer, texts), strict=True):
        too_long = window.pieces.truncated and len(words) > 1
        found.append(_divide(tokenizer, words, window.answered) if too_long else [window])
    return found


def pack_windows(
    windows: Sequence[Window], device: torch.device | str = "cpu", *, with_first: bool = False
) -> WordBatch:
    """The windows as a batch. A word without pieces is read at the window's first piece.

    with_first: each window has one word more, before its others, which is its first piece.
    """
    batch = pack([window.pieces for window in windows], device=device)
    places: list[int] = []
    n_pieces: list[int] = []
    n_words: list[int] = []
    start = 0
    for window in windows:
        words = [(0,), *window.places] if with_first else window.places
        for own in words:
            read = own or (0,)
            places += [start + place for place in read]
            n_pieces.append(len(read))
        n_words.append(len(words))
        start += len(window.pieces.ids)
    where = torch.tensor(places, dtype=torch.long).to(device, non_blocking=True)
    texts = Layout.of(n_words, device)
    return WordBatch(batch, WordPlaces(where, Layout.of(n_pieces, device), texts))


def _divide(tokenizer: PieceTokenizer, words: Sequence[str], answered: range) -> list[Window]:
    """Windows that answer these words: halves of them, each with its neighbours, until they fit."""
    margin = len(answered) // 4
    chosen = range(max(0, answered.start - margin), min(len(words), answered.stop + margin))
    (window,) = _read(tokenizer, [words[chosen.start : chosen.stop]], [chosen], [answered])
    if len(answered) == 1 or not window.pieces.truncated:
        return [window]
    middle = (answered.start + answered.stop) // 2
    halves = range(answered.start, middle), range(middle, answered.stop)
    return [one for half in halves for one in _divide(tokenizer, words, half)]


def _read(
    tokenizer: PieceTokenizer,
    texts: Sequence[Sequence[str]],
    chosen: Sequence[range],
    answered: Sequence[range],
) -> list[Window]:
    windows = []
    read_texts = tokenizer.read([" ".join(words) for words in texts])
    for words, read, own, wanted in zip(texts, read_texts, chosen, answered, strict=True):
        starts = _starts(words)
        places: list[list[int]] = [[] for _ in words]
        for word in read.words:
            places[bisect_right(starts, word.start) - 1] += word.pieces
        found = tuple(map(tuple, places))
        windows.append(Window(read.pieces, own.start, wanted, found))
    return windows


def _starts(words: Sequence[str]) -> list[int]:
    """Where each word begins when a blank stands between them."""
    starts, place = [], 0
    for word in words:
        starts.append(place)
        place += len(word) + 1
    return starts
