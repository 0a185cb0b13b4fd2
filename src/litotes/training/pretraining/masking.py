"""The input of a language model: which pieces are to be guessed, and what stands in their place.

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
from litotes.core.values import MISSING
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.tokenizer import Frame, PieceTokenizer
from litotes.training.pretraining.texts import Blocks, Numbers
from litotes.training.recipe import ObjectiveSettings

MASKS = ("[MASK]", "<mask>")
FOLLOWS, RANDOM = 0, 1
"""The kinds of pairs: the second half follows the first in its document, or is from another. The
numbers are those of `transformers`.
"""


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
        """The numbers of the chosen pieces. (chosen piece,)"""
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
    """Chooses pieces of texts and replaces them."""

    def __init__(self, tokenizer: PieceTokenizer, settings: ObjectiveSettings) -> None:
        self.settings, self.mask = settings, find_mask(tokenizer)
        self.is_special = torch.zeros(tokenizer.n_vocabulary, dtype=torch.bool)  # (vocabulary,)
        self.is_special[list(tokenizer.meaningless)] = True
        (self.ordinary,) = (~self.is_special).nonzero(as_tuple=True)
        if not len(self.ordinary):
            raise UserError("The tokenizer has no pieces that mean something. Choose another.")

    def hide(
        self, texts: Sequence[Numbers], generator: Generator, follows: Sequence[int] = ()
    ) -> MaskedTexts:
        """The texts with pieces to guess; what is drawn depends on the generator alone.

        texts: of each piece its number, 1 if it continues a word, and its segment, (3, piece).
        follows: of pairs.
        """
        ids, continues, segments = torch.from_numpy(np.hstack(texts))
        chosen = self._choose(ids, continues, generator)
        shown = torch.where(chosen, self._replacements(ids, generator), ids)
        columns = torch.stack([ids, shown, segments, chosen])
        lengths = tuple(text.shape[1] for text in texts)
        return MaskedTexts(columns, lengths, torch.tensor(follows or [MISSING] * len(texts)))

    def _choose(self, ids: Tensor, continues: Tensor, generator: Generator) -> Tensor:
        """Draws which pieces are to be guessed. (piece,)"""
        unit = torch.arange(len(ids))
        if self.settings.whole_words:
            unit = (1 - continues).cumsum(0) - 1
        is_drawn = torch.rand(int(unit[-1]) + 1, generator=generator) < self.settings.share
        return is_drawn[unit] & ~self.is_special[ids]

    def _replacements(self, ids: Tensor, generator: Generator) -> Tensor:
        """Draws what would stand in place of each piece. (piece,)"""
        settings = self.settings
        kind = torch.rand(len(ids), generator=generator)
        drawn = torch.randint(len(self.ordinary), (len(ids),), generator=generator)
        is_masked, is_random = kind < settings.masked, kind < settings.masked + settings.random
        replaced = torch.where(is_random, self.ordinary[drawn], ids)
        return torch.where(is_masked, self.mask, replaced)


class Reader(Masker):
    """Blocks as a language model reads them, special pieces around them, with pieces to guess.

    With `next_sentence` blocks are read as pairs: a block's lines are divided, and in half of the
    pairs the second half is that of a block from another document (Devlin et al. 2019, arXiv
    1810.04805, §3.1, task 2). A block of a single line is read as one text: nothing follows in it.
    """

    def __init__(
        self, blocks: Blocks, tokenizer: PieceTokenizer, settings: ObjectiveSettings
    ) -> None:
        super().__init__(tokenizer, settings)
        self.blocks = blocks
        self.single, self.pair = (tokenizer.frame(pair=is_pair) for is_pair in (False, True))
        self.room = tokenizer.max_pieces - len(self.pair)  # of a pair
        if settings.next_sentence and len(np.unique(blocks.rows[:, 2])) < 2:
            raise UserError(
                "objective.next_sentence needs blocks of at least two documents, to learn from and"
                " held out: divide the text by blank lines, give more of it, or raise"
                " data.held_out."
            )

    def read(self, places: Sequence[int], *, seed: int) -> MaskedTexts:
        """The blocks at these places; what is drawn depends on the seed alone."""
        generator = Generator().manual_seed(seed)
        texts, follows = zip(*(self._frame(place, generator) for place in places), strict=True)
        return self.hide(texts, generator, follows)

    def _frame(self, place: int, generator: Generator) -> tuple[Numbers, int]:
        """A block, or a pair of halves, between special pieces: each piece, 1 if it continues a
        word, and its segment, (3, piece). And of a pair, whether it follows.
        """
        store, (start, end) = self.blocks.store, self.blocks.span(place)
        middle = self._cut(start, end, generator) if self.settings.next_sentence else None
        if middle is None:
            return frame_text(self.single, store.read(start, end)), MISSING
        follows = RANDOM if _draw(2, generator) else FOLLOWS
        span = (middle, end) if follows == FOLLOWS else self._other(place, generator)
        second = store.read(*span)[:, : self.room - (middle - start)]
        return frame_text(self.pair, store.read(start, middle), second), follows

    def _other(self, place: int, generator: Generator) -> tuple[int, int]:
        """The second half of a block from another document."""
        documents, other = self.blocks.rows[:, 2], place
        while documents[other] == documents[place]:
            other = _draw(len(documents), generator)
        start, end = self.blocks.span(other)
        middle = self._cut(start, end, generator)
        return (start if middle is None else middle), end

    def _cut(self, start: int, end: int, generator: Generator) -> int | None:
        """Draws where one of the lines inside begins; None where there is only one."""
        first, last = np.searchsorted(self.blocks.cuts, [start + 1, end])
        if first == last:
            return None
        return int(self.blocks.cuts[first + _draw(int(last - first), generator)])


def frame_text(frame: Frame, first: Numbers, *second: Numbers) -> Numbers:
    """One text, or two, as a store reads them, with what stands around them, and segments.

    (3, piece)
    """
    begin = np.hstack([_special(frame.before), first, _special(frame.between)])
    end = np.hstack([*second, _special(frame.after)])
    segments = np.repeat([0, frame.second_segment], [begin.shape[1], end.shape[1]])
    return np.vstack([np.hstack([begin, end]), segments])


def _special(pieces: Sequence[int]) -> Numbers:
    return np.array([pieces, [0] * len(pieces)], dtype=np.int64)


def _draw(n: int, generator: Generator) -> int:
    return int(torch.randint(n, (), generator=generator))


def find_first(tokenizer: PieceTokenizer, spellings: Sequence[str]) -> int | None:
    """The number of the first of these pieces that the tokenizer has."""
    found = map(tokenizer.find_piece, spellings)
    return next((number for number in found if number is not None), None)


def find_mask(tokenizer: PieceTokenizer) -> int:
    """The number of the mask."""
    number = find_first(tokenizer, MASKS)
    if number is not None:
        return number
    raise UserError(
        f"The tokenizer has no mask ({' or '.join(MASKS)}), so that nothing can be hidden. Choose"
        " an encoder that was pretrained with one, or start with [model.scratch]."
    )
