"""Pieces of several texts laid end to end: the batch the encoder reads."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litotes.core.values import MISSING, Example, Label, Task
from litotes.data.corpus import Axis, name_along
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.tokenizer import Pieces, PieceTokenizer


def pack(texts: Sequence[Pieces], *, device: torch.device | str = "cpu") -> Batch:
    """Packs the texts, in order, into one batch."""
    ids = list(chain.from_iterable(text.ids for text in texts))
    segments = list(chain.from_iterable(text.segments for text in texts))
    return Batch(
        pieces=torch.tensor(ids, dtype=torch.long).to(device, non_blocking=True),  # (piece,)
        segments=torch.tensor(segments, dtype=torch.long).to(device, non_blocking=True),  # (piece,)
        layout=Layout.of([len(text.ids) for text in texts], device),
    )


def lay_end_to_end(texts: Sequence[Pieces]) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """Pieces and segments of the texts in order, (piece,); None: segment 0 throughout."""
    n_pieces = sum(len(text.ids) for text in texts)
    pieces = np.fromiter(chain.from_iterable([text.ids for text in texts]), np.int32, n_pieces)
    # a single text has segment 0 throughout, a pair ends in another
    if not any(text.segments[-1] for text in texts):
        return pieces, None
    numbers = chain.from_iterable([text.segments for text in texts])
    return pieces, np.fromiter(numbers, np.int32, n_pieces)


def targets(examples: Sequence[Example], tasks: Iterable[Task]) -> dict[str, Tensor]:
    """Per task a (text,) tensor of class numbers, or of numbers for a regression; where a text may
    have several labels, (text, class) with 1 for each that it has.
    """
    return {task.name: _target(examples, task) for task in tasks}


def _target(examples: Sequence[Example], task: Task) -> Tensor:
    labels = [example.labels.get(task.name) for example in examples]
    if task.is_regression:
        return torch.tensor([math.nan if label is None else float(str(label)) for label in labels])
    if task.multi_label:
        return torch.tensor([_flags(label, task) for label in labels])  # (text, class)
    place = {word: number for number, word in enumerate(task.labels)}
    return torch.tensor([MISSING if label is None else place[str(label)] for label in labels])


def _flags(label: Label | None, task: Task) -> list[float]:
    if label is None:
        return [math.nan] * len(task.labels)
    assert isinstance(label, tuple)
    return [float(word in label) for word in task.labels]


def batches_by_budget(
    lengths: Sequence[int], *, max_texts: int = 64, max_pieces: int = 4096
) -> Iterator[list[int]]:
    """The places of consecutive texts that fit into one batch.

    A batch is limited by the number of its texts and of their pieces. The defaults suit work
    without gradients: large enough to keep the cores busy, small enough for their caches.
    """
    batch: list[int] = []
    n_pieces = 0
    for place, length in enumerate(lengths):
        if batch and (len(batch) == max_texts or n_pieces + length > max_pieces):
            yield batch
            batch, n_pieces = [], 0
        batch.append(place)
        n_pieces += length
    if batch:
        yield batch


def batches_without_gradients(lengths: Sequence[int], device: torch.device) -> Iterator[list[int]]:
    """The same by what suits the device: a GPU is busy only with more than fits a CPU's caches."""
    if device.type == "cuda":
        return batches_by_budget(lengths, max_texts=1024, max_pieces=16_384)
    return batches_by_budget(lengths)


@dataclass(frozen=True)
class TextSet:
    """Texts ready to be packed.

    targets: (text,) per task, of several labels (text, class); groups: the number of the group each
    text belongs to (text,).
    """

    pieces: Sequence[Pieces]
    targets: Mapping[str, Tensor]
    groups: Tensor
    group_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def lengths(self) -> list[int]:
        return [len(text.ids) for text in self.pieces]

    @property
    def n_groups(self) -> int:
        return len(self.group_names)

    @property
    def n_truncated(self) -> int:
        return sum(text.truncated for text in self.pieces)

    @property
    def n_unreadable(self) -> int:
        return sum(text.unreadable for text in self.pieces)

    def targets_of(self, places: Sequence[int]) -> dict[str, Tensor]:
        return {task: target[list(places)] for task, target in self.targets.items()}

    def batch(self, places: Sequence[int], device: torch.device | str = "cpu") -> Batch:
        return pack([self.pieces[place] for place in places], device=device)


def encode_examples(tokenizer: PieceTokenizer, examples: Sequence[Example]) -> list[Pieces]:
    """The pieces of every example, those of its pair included."""
    texts = [example.text for example in examples]
    return tokenizer.encode(texts, [example.pair for example in examples])


def make_text_set(
    examples: Sequence[Example],
    tasks: Iterable[Task],
    tokenizer: PieceTokenizer,
    *,
    group_by: Axis = "variety",
) -> TextSet:
    """Tokenizes the examples, looks up their targets and numbers their groups."""
    pieces = encode_examples(tokenizer, examples)
    names = [name_along(example, group_by) for example in examples]
    known = tuple(sorted(set(names)))
    groups = torch.tensor([known.index(name) for name in names], dtype=torch.long)  # (text,)
    return TextSet(pieces, targets(examples, tasks), groups, known)


# Texts given as words, read as pieces


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
    """Reads each text as one window; what the encoder cannot read of it is cut off, and the pieces
    say so.
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
    read: list[list[int]] = []
    starts = [0, *accumulate(batch.layout.lengths)]
    for start, window in zip(starts, windows, strict=False):
        words = [(0,), *window.places] if with_first else window.places
        read += [[start + place for place in own or (0,)] for own in words]
    places = torch.tensor(list(chain.from_iterable(read)), dtype=torch.long)
    by_word = Layout.of([len(own) for own in read], device)
    by_text = Layout.of([len(window.places) + with_first for window in windows], device)
    return WordBatch(batch, WordPlaces(places.to(device, non_blocking=True), by_word, by_text))


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
        # where each word begins when a blank stands between them
        starts = [0, *accumulate(len(word) + 1 for word in words)]
        places: list[list[int]] = [[] for _ in words]
        for word in read.words:
            places[bisect_right(starts, word.start) - 1] += word.pieces
        found = tuple(map(tuple, places))
        windows.append(Window(read.pieces, own.start, wanted, found))
    return windows
