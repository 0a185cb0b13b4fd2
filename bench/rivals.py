"""Opponents of `classify` with an engine of their own: CTranslate2 and OpenVINO, float32 and int8.

They get the same pieces, all threads, and the batches that suit them. Texts are sorted by length;
then either so many at a time, or those of equal length together as our own workers take them. Each
choice is tried with one batch on all cores and with a batch on each core, and the fastest is
measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bench.batching import Logits, split
from litotes.encoder.tokenizer import Pieces
from litotes.prediction.onnx_runtime import group_by_length

RIVALS = {
    "ct2-fp32": ("ctranslate2", "float32"),
    "ct2-int8": ("ctranslate2", "int8"),
    "ov-fp32": ("openvino", "float32"),
    "ov-int8": ("openvino", "int8"),
}
"""The names of their lines: the library and the precision."""
SIZES: tuple[int | None, ...] = (None, 1, 4, 8, 16, 32)
"""Texts a batch that are tried; None: texts of equal length, as many as our workers take."""
N_TRIED = 48
"""Texts on which they are."""
N_TRIALS = 2
"""Of each; the quickest counts."""


class Rival(Protocol):
    """Batches of pieces to the logits of each, (text, class of all tasks)."""

    def logits(self, batches: Sequence[Sequence[Pieces]]) -> list[Logits]: ...


@dataclass(frozen=True)
class Setting:
    """How texts are given to an opponent: so many at a time (None: those of equal length), and so
    many batches at once.
    """

    size: int | None
    n_streams: int

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Places of texts, the longest first."""
        if self.size is None:
            return list(group_by_length(lengths))
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        return [list(batch) for batch in split(order, self.size)]

    def padded(self, lengths: Sequence[int]) -> list[int]:
        """Every length filled up to the longest of its batch, in the order of the texts."""
        padded = list(lengths)
        for batch in self.batches(lengths):
            for place in batch:
                padded[place] = lengths[batch[0]]
        return padded

    def __str__(self) -> str:
        texts = "texts of equal length" if self.size is None else f"batches of {self.size}"
        return f"{texts}, {self.n_streams} at once"


@dataclass(frozen=True)
class TunedRival:
    """An opponent with the setting that suits it best."""

    rival: Rival
    setting: Setting

    def logits(self, texts: Sequence[Pieces]) -> Logits:
        """In the order of the texts. (text, class of all tasks)"""
        batches = self.setting.batches([len(text.ids) for text in texts])
        found = self.rival.logits([[texts[place] for place in batch] for batch in batches])
        return np.concatenate(found)[np.argsort(np.concatenate(batches))]


def tune(
    open_rival: Callable[[int], Rival],
    texts: Sequence[Pieces],
    *,
    n_cores: int,
    clock: Callable[[], float] = time.perf_counter,
) -> TunedRival:
    """The fastest of all settings on the first N_TRIED texts. open_rival: by the number of batches
    at once.
    """
    tried: list[tuple[float, TunedRival]] = []
    for n_streams in sorted({1, n_cores}):
        rival = open_rival(n_streams)
        for size in SIZES:
            candidate = TunedRival(rival, Setting(size, n_streams))
            tried.append((_seconds(candidate, texts[:N_TRIED], clock), candidate))
    return min(tried, key=lambda one: one[0])[1]


def _seconds(rival: TunedRival, texts: Sequence[Pieces], clock: Callable[[], float]) -> float:
    """Of the quickest trial."""
    seconds = []
    for _ in range(N_TRIALS):
        start = clock()
        rival.logits(texts)
        seconds.append(clock() - start)
    return min(seconds)
