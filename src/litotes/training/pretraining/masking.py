"""Which pieces are to be guessed, and what stands in their place.

Of the pieces that mean something a share (0.15) is chosen, each by itself or a word at a time. Of
the chosen, 0.8 are replaced by the mask, 0.1 by any piece, and the rest stay as they are, so that
the encoder cannot rely on the mask: Devlin et al. 2019 (arXiv 1810.04805), §3.1. The choice is
drawn anew whenever a text is read: Liu et al. 2019 (arXiv 1907.11692), §4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from litotes.core.errors import UserError
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.texts import FramedText, Reader
from litotes.training.recipe import ObjectiveSettings

MASKS = ("[MASK]", "<mask>")


@dataclass(frozen=True)
class MaskedBatch:
    """Masked texts laid end to end, on a device.

    places: of the chosen pieces among all pieces; targets: what they were. (chosen piece,)
    follows: of each pair FOLLOWS or RANDOM, else MISSING. (text,)
    """

    batch: Batch
    places: Tensor
    targets: Tensor
    follows: Tensor


@dataclass(frozen=True)
class MaskedTexts:
    """Texts with pieces to guess, laid end to end, on the CPU.

    columns: what each piece is, what is shown in its place, its segment, and whether it is chosen,
    (4, piece). lengths: of the texts. follows: (text,)
    """

    columns: Tensor
    lengths: tuple[int, ...]
    follows: Tensor

    @cached_property
    def by_text(self) -> tuple[Tensor, ...]:
        """The columns of each text."""
        return self.columns.split(self.lengths, dim=1)

    @property
    def targets(self) -> Tensor:
        """What the chosen pieces are. (chosen piece,)"""
        ids, _, _, chosen = self.columns
        return ids[chosen > 0]

    def pack(self, places: Sequence[int], device: torch.device) -> MaskedBatch:
        """One batch of the texts at these places."""
        own = torch.cat([self.by_text[place] for place in places], dim=1)
        ids, shown, segments, chosen = own
        (guessed,) = chosen.nonzero(as_tuple=True)
        together = (shown, segments, guessed, ids[guessed], self.follows[list(places)])
        pieces, segments, *rest = (tensor.to(device, non_blocking=True) for tensor in together)
        layout = Layout.of([self.lengths[place] for place in places], device)
        return MaskedBatch(Batch(pieces, segments, layout), *rest)


class Masker:
    """Chooses pieces and replaces them."""

    def __init__(self, tokenizer: PieceTokenizer, settings: ObjectiveSettings) -> None:
        self.settings, self.mask = settings, find_mask(tokenizer)
        self.is_special = torch.zeros(tokenizer.n_vocabulary, dtype=torch.bool)  # (vocabulary,)
        self.is_special[list(tokenizer.meaningless)] = True
        (self.ordinary,) = (~self.is_special).nonzero(as_tuple=True)
        if not len(self.ordinary):
            raise UserError("The tokenizer has no pieces that mean something. Choose another.")

    def mask_texts(self, texts: Sequence[FramedText], generator: Generator) -> MaskedTexts:
        """The texts with pieces to guess; what is drawn depends on the generator alone."""
        columns = np.concatenate([text.columns for text in texts], axis=1)
        ids, continues, segments = torch.from_numpy(columns)
        chosen = self._choose(ids, continues, generator)
        shown = torch.where(chosen, self._replacements(ids, generator), ids)
        return MaskedTexts(
            torch.stack([ids, shown, segments, chosen]),
            tuple(text.columns.shape[1] for text in texts),
            torch.tensor([text.follows for text in texts]),
        )

    def _choose(self, ids: Tensor, continues: Tensor, generator: Generator) -> Tensor:
        """Whether each piece is to be guessed. (piece,)"""
        unit = torch.arange(len(ids))
        if self.settings.whole_words:
            unit = (1 - continues).cumsum(0) - 1
        is_drawn = torch.rand(int(unit[-1]) + 1, generator=generator) < self.settings.share
        return is_drawn[unit] & ~self.is_special[ids]

    def _replacements(self, ids: Tensor, generator: Generator) -> Tensor:
        """What would stand in place of each piece. (piece,)"""
        settings = self.settings
        kind = torch.rand(len(ids), generator=generator)
        drawn = torch.randint(len(self.ordinary), (len(ids),), generator=generator)
        is_masked, is_random = kind < settings.masked, kind < settings.masked + settings.random
        replaced = torch.where(is_random, self.ordinary[drawn], ids)
        return torch.where(is_masked, self.mask, replaced)


def read_masked(reader: Reader, masker: Masker, places: Sequence[int], *, seed: int) -> MaskedTexts:
    """Blocks with pieces to guess; the same for the same seed."""
    generator = Generator().manual_seed(seed)
    texts = [reader.read(place, generator) for place in places]
    return masker.mask_texts(texts, generator)


def find_mask(tokenizer: PieceTokenizer) -> int:
    """The number of the mask."""
    for number in map(tokenizer.find_piece, MASKS):
        if number is not None:
            return number
    raise UserError(
        f"The tokenizer has no mask ({' or '.join(MASKS)}), so that nothing can be hidden. Choose"
        " an encoder that was pretrained with one, or start with [model.scratch]."
    )
