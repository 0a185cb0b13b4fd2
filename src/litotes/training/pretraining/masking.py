"""Which pieces are to be guessed, and what stands in their place.

Of the pieces that mean something a share (0.15) is chosen, each by itself or a word at a time. Of
the chosen, 0.8 are replaced by the mask, 0.1 by any piece, and the rest stay as they are, so that
the encoder cannot rely on the mask: Devlin et al. 2019 (arXiv 1810.04805), §3.1. The choice is
drawn anew whenever a text is read: Liu et al. 2019 (arXiv 1907.11692), §4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from litotes.core.errors import UserError
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.texts import FramedText
from litotes.training.recipe import ObjectiveSettings

MASKS = ("[MASK]", "<mask>")


@dataclass(frozen=True)
class MaskedText:
    """A text as the encoder reads it, and what it must guess.

    ids, segments: (piece,); places, targets: (chosen piece,); follows: of a pair, or MISSING.
    """

    ids: Tensor
    segments: Tensor
    places: Tensor
    targets: Tensor
    follows: int


@dataclass(frozen=True)
class MaskedBatch:
    """Masked texts laid end to end, on a device.

    places: of the chosen pieces among all pieces; targets: what they were. (chosen piece,)
    texts: which text each is of. (chosen piece,) follows: (text,)
    """

    batch: Batch
    places: Tensor
    targets: Tensor
    texts: Tensor
    follows: Tensor


class Masker:
    """Chooses pieces and replaces them."""

    def __init__(self, tokenizer: PieceTokenizer, settings: ObjectiveSettings) -> None:
        self.settings = settings
        self.mask = find_mask(tokenizer)
        numbers = np.arange(tokenizer.n_vocabulary)
        self.is_special = np.isin(numbers, list(tokenizer.meaningless))  # (piece of vocabulary,)
        self.ordinary = torch.tensor(numbers[~self.is_special])
        if not len(self.ordinary):
            raise UserError("The tokenizer has no pieces that mean something. Choose another.")

    def mask_texts(self, texts: Sequence[FramedText], generator: Generator) -> list[MaskedText]:
        """The texts with pieces to guess; what is drawn depends on the generator alone."""
        ids = torch.tensor(np.concatenate([text.ids for text in texts]))  # (piece,)
        continues = np.concatenate([text.continues for text in texts])
        chosen = self._choose(ids, continues, generator)
        shown = torch.where(chosen, self._replacements(ids, generator), ids)
        split = [one.split([len(text.ids) for text in texts]) for one in (ids, shown, chosen)]
        masked = []
        for text, own, own_shown, own_chosen in zip(texts, *split, strict=True):
            (places,) = own_chosen.nonzero(as_tuple=True)
            segments = torch.tensor(text.segments)
            masked.append(MaskedText(own_shown, segments, places, own[places], text.follows))
        return masked

    def _choose(self, ids: Tensor, continues: NDArray[np.bool_], generator: Generator) -> Tensor:
        """Whether each piece is to be guessed. (piece,)"""
        n_units = len(ids)
        unit = torch.arange(n_units)
        if self.settings.whole_words:
            unit = torch.tensor(~continues).cumsum(0) - 1
            n_units = int(unit[-1]) + 1
        is_drawn = torch.rand(n_units, generator=generator) < self.settings.share
        return is_drawn[unit] & ~torch.tensor(self.is_special[ids.numpy()])

    def _replacements(self, ids: Tensor, generator: Generator) -> Tensor:
        """What would stand in place of each piece. (piece,)"""
        settings = self.settings
        kind = torch.rand(len(ids), generator=generator)
        drawn = torch.randint(len(self.ordinary), (len(ids),), generator=generator)
        is_masked, is_random = kind < settings.masked, kind < settings.masked + settings.random
        replaced = torch.where(is_random, self.ordinary[drawn], ids)
        return torch.where(is_masked, self.mask, replaced)


def find_mask(tokenizer: PieceTokenizer) -> int:
    """The number of the mask."""
    for written in MASKS:
        number = tokenizer.find_piece(written)
        if number is not None:
            return number
    raise UserError(
        f"The tokenizer has no mask ({' or '.join(MASKS)}), so that nothing can be hidden. Choose"
        " an encoder that was pretrained with one, or start with [model.scratch]."
    )


def pack_masked(texts: Sequence[MaskedText], device: torch.device) -> MaskedBatch:
    """One batch of the texts in order."""
    layout = Layout.of([len(text.ids) for text in texts], device)
    n_chosen = torch.tensor([len(text.places) for text in texts])
    starts = torch.tensor([0, *layout.lengths[:-1]]).cumsum(0)
    of_text = torch.arange(len(texts)).repeat_interleave(n_chosen)  # (chosen piece,)
    places = torch.cat([text.places for text in texts]) + starts[of_text]
    together = (
        torch.cat([text.ids for text in texts]),
        torch.cat([text.segments for text in texts]),
        places,
        torch.cat([text.targets for text in texts]),
        of_text,
        torch.tensor([text.follows for text in texts]),
    )
    pieces, segments, *chosen = (tensor.to(device, non_blocking=True) for tensor in together)
    return MaskedBatch(Batch(pieces, segments, layout), *chosen)
