"""Texts into buckets: batches are filled by pieces, not by texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from litotes.encoder.packing import lay_end_to_end
from litotes.encoder.tokenizer import Pieces
from litotes.kernels.route import RoutePlan, Sizes
from litotes.kernels.tiles import Numbers
from litotes.kernels.triton_operations import SideStream, route_options
from litotes.model.classifier import Classifier
from litotes.prediction.cuda.captured_pass import CapturedPass, Slot

BUCKETS = (256, 1024, 4096, 16384, 32768)
"""Pieces. A batch takes the smallest that holds what is left, else the largest."""

PIECES_PER_TEXT = (48, 16)
"""How long texts are on average, at least, before a bucket runs out of room for texts: a bucket
for long ones has fewer programs that find nothing to do, one for short ones holds more of them.
"""


@dataclass(frozen=True)
class _Started:
    """A batch on its way: how many texts, and where their logits will be."""

    n_texts: int
    slot: Slot


class Buckets:
    """All buckets of a classifier. largest: pieces at most, of `BUCKETS`."""

    def __init__(self, classifier: Classifier, *, largest: int = BUCKETS[-1]) -> None:
        self.classifier = classifier
        self.sizes = tuple(size for size in BUCKETS if size <= largest)
        self.pool = torch.cuda.graph_pool_handle()
        self.side = SideStream()
        self.passes: dict[tuple[int, int], CapturedPass] = {}
        self.longest = classifier.encoder.spec.max_pieces

    def logits(
        self, texts: Sequence[Pieces], *, between: Callable[[], None] = lambda: None
    ) -> NDArray[np.float32]:
        """The logits of all tasks side by side, in the texts' order. (text, class)"""
        lengths = np.fromiter((len(text.ids) for text in texts), np.int32, len(texts))
        parts: list[NDArray[np.float32]] = []
        waiting: list[_Started] = []
        first = 0
        with torch.inference_mode():
            while first < len(texts):
                between()
                started = self._start(texts, lengths, first)
                waiting.append(started)
                first += started.n_texts
                if len(waiting) > 1:
                    parts.append(_collect(waiting.pop(0)))
            parts += [_collect(started) for started in waiting]
        return np.concatenate(parts)

    def _start(self, texts: Sequence[Pieces], lengths: Numbers, first: int) -> _Started:
        left = lengths[first:]
        bucket = self._bucket_for(left)
        n_texts = bucket.plan.n_fitting(left)
        chosen = texts[first : first + n_texts]
        pieces, segments = lay_end_to_end(chosen)
        return _Started(n_texts, bucket.start(pieces, segments, left[:n_texts]))

    def _bucket_for(self, left: Numbers) -> CapturedPass:
        total = int(left.sum())
        size = next((size for size in self.sizes if total <= size), self.sizes[-1])
        for bucket_size in self.sizes[self.sizes.index(size) :]:
            bucket = self._pass(bucket_size, self._pieces_per_text(left, bucket_size))
            if bucket.plan.n_fitting(left) == len(left):
                return bucket
        return self._pass(self.sizes[-1], self._pieces_per_text(left, self.sizes[-1]))

    def _pieces_per_text(self, left: Numbers, size: int) -> int:
        """For texts as long as the next ones are."""
        many, few = PIECES_PER_TEXT
        n_texts = max(1, size // many)
        enough = len(left) <= n_texts or int(left[:n_texts].sum()) >= size
        return many if enough else few

    def _pass(self, size: int, pieces_per_text: int) -> CapturedPass:
        key = (size, pieces_per_text)
        if key not in self.passes:
            options = route_options(
                self.classifier.encoder, firsts_only=self.classifier.firsts_only, trains=False
            )
            sizes = Sizes(size, max(1, size // pieces_per_text), min(self.longest, size))
            plan = RoutePlan.for_bucket(options, sizes)
            self.passes[key] = CapturedPass(self.classifier, plan, self.pool, self.side)
        return self.passes[key]


def _collect(started: _Started) -> NDArray[np.float32]:
    started.slot.done.synchronize()
    return started.slot.logits[: started.n_texts].numpy().copy()
