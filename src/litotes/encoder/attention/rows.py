"""Packed texts become rows here, for attention alone, and packed again right after.

On a CPU each text is a row block of its own: no padding exists at all, and a text's answer cannot
depend on its batch mates. On an accelerator one launch for all texts beats many small ones, so the
rows are filled up to the longest text and `live` says where the real keys are; so they are on a CPU
for many short texts of nearly one length (`Layout.alike`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from litotes.encoder.layout import Layout


@dataclass(frozen=True)
class Rows:
    """Turns packed (piece, attention_head, head_width) into row blocks (text, attention_head,
    piece, head_width) and back.
    """

    layout: Layout
    apart: bool  # each text a block of its own, or all of them one block

    @classmethod
    def of(cls, layout: Layout) -> Rows:
        """The kind of rows that suits the layout and its device."""
        return cls(layout, apart=layout.device.type == "cpu" and not layout.alike)

    @cached_property
    def _places(self) -> Tensor:
        """Each piece's place in the flattened (text × longest) rows. (piece,)"""
        return self.layout.texts * self.layout.longest + self.layout.positions

    def split(self, packed: Tensor) -> list[Tensor]:
        if self.apart:
            # `split`, unlike slicing in a loop, has one backward for all texts.
            return [text.transpose(0, 1).unsqueeze(0) for text in packed.split(self.layout.lengths)]
        layout = self.layout
        rows = packed.new_zeros(layout.n_texts * layout.longest, *packed.shape[1:])
        # (text × longest, attention_head, head_width)
        rows = rows.index_copy(0, self._places, packed)
        return [rows.view(layout.n_texts, layout.longest, *packed.shape[1:]).transpose(1, 2)]

    def join(self, blocks: Sequence[Tensor]) -> Tensor:
        """Back to (piece, attention_head, head_width)."""
        if self.apart:
            return torch.cat([block.squeeze(0).transpose(0, 1) for block in blocks])
        # (text × longest, attention_head, head_width)
        rows = blocks[0].transpose(1, 2).flatten(0, 1)
        return rows.index_select(0, self._places)

    @cached_property
    def live(self) -> list[Tensor | None]:
        """Per block which keys are real, (text, 1, 1, key), or None where all are."""
        if self.apart:
            return [None] * self.layout.n_texts
        place = torch.arange(self.layout.longest, device=self.layout.device)
        return [(place < self.layout.counts[:, None])[:, None, None, :]]

    def by_text(self, values: Tensor | None) -> list[Tensor | None]:
        """Per block its part of something that every text has one of, (text, …)."""
        if values is None:
            return [None] * len(self.live)
        return list(values.split(1)) if self.apart else [values]

    def places_in_text(self, origin: Tensor) -> list[Tensor]:
        """Per block where each row's pieces stood in their text, (text, piece), from `origin`
        (piece,); 0 for padding.
        """
        if self.apart:
            return [text.unsqueeze(0) for text in origin.split(self.layout.lengths)]
        rows = origin.new_zeros(self.layout.n_texts * self.layout.longest).index_copy(
            0, self._places, origin
        )
        return [rows.view(self.layout.n_texts, self.layout.longest)]
