"""Texts of words ready to be packed: their windows, and what is to be learned from each.

A target of a tagging is the number of each word's label; of a span the positions of its first and
its last word, where position 0 stands for "there is none" and the words begin at 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.core.values import MISSING, Task
from litotes.data.words.corpus import WordExample
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.encoder.word_pieces import Window, WordBatch, pack_windows, read_whole, read_windows


@dataclass(frozen=True)
class WordSet:
    """Windows with their targets, (word,) or (2,) a window; MISSING where nothing is learned.

    owners: which text each window is a part of. n_cut: texts, or words, that were not read whole.
    """

    windows: tuple[Window, ...]
    targets: tuple[Tensor, ...]
    owners: tuple[int, ...]
    n_texts: int
    with_first: bool

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def lengths(self) -> list[int]:
        return [len(window.pieces.ids) for window in self.windows]

    @property
    def n_cut(self) -> int:
        return len(
            {
                owner
                for owner, window in zip(self.owners, self.windows, strict=True)
                if window.pieces.truncated
            }
        )

    def batch(self, places: Sequence[int], device: torch.device) -> WordBatch:
        windows = [self.windows[place] for place in places]
        return pack_windows(windows, device, with_first=self.with_first)

    def targets_of(self, places: Sequence[int]) -> Tensor:
        """Tagging: (word,), one window after the other. Span: (window, 2)."""
        chosen = [self.targets[place] for place in places]
        return torch.stack(chosen) if self.with_first else torch.cat(chosen)


def make_windows(
    texts: Sequence[Sequence[str]], tokenizer: PieceTokenizer, kind: str
) -> list[list[Window]]:
    """Of each text. A span is looked for in as much of a text as an encoder reads at once."""
    if kind == "span":
        return [[window] for window in read_whole(tokenizer, texts)]
    return read_windows(tokenizer, texts)


def make_word_set(
    examples: Sequence[WordExample], task: Task, tokenizer: PieceTokenizer, kind: str
) -> WordSet:
    windows: list[Window] = []
    targets: list[Tensor] = []
    owners: list[int] = []
    by_text = make_windows([one.words for one in examples], tokenizer, kind)
    for owner, (example, own) in enumerate(zip(examples, by_text, strict=True)):
        for window in own:
            windows.append(window)
            owners.append(owner)
            targets.append(
                _span_target(example, window)
                if kind == "span"
                else _tag_target(example, window, task)
            )
    return WordSet(tuple(windows), tuple(targets), tuple(owners), len(examples), kind == "span")


def _tag_target(example: WordExample, window: Window, task: Task) -> Tensor:
    """The numbers of the labels; of neighbours that another window answers, nothing. (word,)"""
    number = {label: place for place, label in enumerate(task.labels)}
    tags = example.tags or ()
    found = []
    for place in range(len(window.places)):
        word = window.first + place
        found.append(number[tags[word]] if word in window.answered else MISSING)
    return torch.tensor(found, dtype=torch.long)


def _span_target(example: WordExample, window: Window) -> Tensor:
    """Positions of the first and the last word. (2,)"""
    if example.span is None:
        return torch.tensor([0, 0])
    first, last = example.span[0], example.span[1] - 1
    if not window.places[first] or not window.places[last]:  # beyond what is read
        return torch.tensor([MISSING, MISSING])
    return torch.tensor([first + 1, last + 1])
