"""Pairs of texts as pieces of one vocabulary, in batches limited by their pieces, laid end to
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litotes.data.parallel import Pair
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.packing import batches_by_budget
from litotes.encoder.tokenizer import Pieces, PieceTokenizer

Numbers = NDArray[np.int64]
_MOST_TEXTS = 2**20  # pieces alone limit a batch


@dataclass(frozen=True)
class PairBatch:
    """Sources, and targets shifted by one: `pieces` are read, `next_pieces` guessed, (piece,)."""

    sources: Batch
    pieces: Tensor
    next_pieces: Tensor
    layout: Layout


@dataclass(frozen=True)
class PairSet:
    """Pairs ready to be packed, special pieces included.

    n_cut: sides that were longer than the model can read.
    """

    sources: Sequence[Numbers]
    targets: Sequence[Numbers]
    n_cut: int

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> Numbers:
        """Pieces that a pair puts into a batch, both sides together."""
        pairs = zip(self.sources, self.targets, strict=True)
        return np.array([len(source) + len(target) - 1 for source, target in pairs], dtype=np.int64)

    def n_guessed(self, places: Iterable[int]) -> int:
        """Pieces that are guessed of some pairs."""
        return sum(len(self.targets[place]) - 1 for place in places)

    def batches(self, n_pieces: int, *, seed: int | None = None) -> list[list[int]]:
        """The places of the pairs of each batch: pairs of one length together, in an order drawn
        by `seed`; None: from short to long.

        The number of batches does not depend on the seed.
        """
        lengths, generator = self.lengths, np.random.default_rng(seed)
        order = np.argsort(lengths, kind="stable")
        if seed is not None:
            order = np.lexsort((generator.random(len(lengths)), lengths))
        found = batches_by_budget(
            lengths[order].tolist(), max_texts=_MOST_TEXTS, max_pieces=n_pieces
        )
        batches = [order[places].tolist() for places in found]
        if seed is None:
            return batches
        return [batches[place] for place in generator.permutation(len(batches))]

    def pack(self, places: Sequence[int], device: torch.device) -> PairBatch:
        targets = [self.targets[place] for place in places]
        read = np.concatenate([target[:-1] for target in targets])
        guessed = np.concatenate([target[1:] for target in targets])
        return PairBatch(
            pack_sources([self.sources[place] for place in places], device),
            _to_device(read, device),
            _to_device(guessed, device),
            Layout.of([len(target) - 1 for target in targets], device),
        )


def pack_sources(sources: Sequence[Numbers], device: torch.device) -> Batch:
    """Packs source texts alone."""
    pieces = _to_device(np.concatenate(sources), device)
    layout = Layout.of([len(source) for source in sources], device, alike=True)
    return Batch(pieces, torch.zeros_like(pieces), layout)


def make_pair_set(pairs: Sequence[Pair], tokenizer: PieceTokenizer) -> PairSet:
    """Cuts every target of every pair, with its source, into pieces."""
    sides = [(pair.source, target) for pair in pairs for target in pair.targets]
    read, wanted = (tokenizer.encode([side[place] for side in sides]) for place in (0, 1))
    n_cut = sum(text.truncated for text in [*read, *wanted])
    return PairSet([as_numbers(one) for one in read], [as_numbers(one) for one in wanted], n_cut)


def as_numbers(text: Pieces) -> Numbers:
    return np.array(text.ids, dtype=np.int64)


def _to_device(numbers: Numbers, device: torch.device) -> Tensor:
    return torch.from_numpy(numbers).to(device, non_blocking=True)
