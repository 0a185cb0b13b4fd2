"""What an observer of a walk is shown: the attention of one layer, and the same text by text.

`Encoder.walk(…, observer=…)` calls the observer with a `LayerTrace` after each layer. Nothing is
kept between layers: the observer decides what to remember.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from litotes.encoder.operations import Seen, State


@dataclass(frozen=True)
class TextAttention:
    """One text in one layer, live pieces alone.

    heads: the attention heads shown, by the numbers they had before any were removed.
    weights: (attention_head, query, key). value, mixed: (attention_head, piece, head_width), with
    mixed = weights · value.
    origin: the place in the text of each piece that came in; -1 for a fused piece, which stands for
    those removed. (piece,)
    stayed: the places of the pieces that went on. (piece,)
    """

    layer: int
    heads: tuple[int, ...]
    weights: Tensor
    value: Tensor
    mixed: Tensor
    origin: Tensor
    stayed: Tensor


@dataclass(frozen=True)
class LayerTrace:
    """One layer's attention over a batch.

    hidden: what came in, (piece, width).
    heads: the attention heads of this layer's block, by their original numbers.
    before, after: the state of the pieces that came in, and of those that went on.
    """

    layer: int
    hidden: Tensor
    heads: Sequence[int]
    attention: Seen
    before: State
    after: State

    def by_text(self) -> Iterator[TextAttention]:
        """The texts of the batch, in order."""
        lengths = self.before.texts.lengths
        weights = _rows_by_text(self.attention.weights, lengths)
        values = self.attention.value.split(lengths)
        by_head = self.attention.mixed.unflatten(1, (len(self.heads), -1))
        mixed = by_head.split(lengths)
        origins = self.before.origin.split(lengths)
        stayed = self.after.origin.split(self.after.texts.lengths)
        for text, parts in enumerate(zip(weights, values, mixed, origins, stayed, strict=True)):
            yield self._of_text(text, *parts)

    def _of_text(
        self,
        text: int,
        weights: Tensor,
        value: Tensor,
        mixed: Tensor,
        origin: Tensor,
        stayed: Tensor,
    ) -> TextAttention:
        """value, mixed: (piece, attention_head, head_width), of all attention heads."""
        heads = list(self.heads)
        used = None if self.before.heads is None else self.before.heads.used
        if used is not None:
            heads = used[text].tolist()
            # pruned heads have no weights to show
            value, mixed = value[:, heads], mixed[:, heads]
        return TextAttention(
            layer=self.layer,
            heads=tuple(heads),
            weights=weights,
            value=value.transpose(0, 1),
            mixed=mixed.transpose(0, 1),
            origin=origin,
            stayed=stayed,
        )


Observer = Callable[[LayerTrace], None]
"""Called with each layer's trace, in order."""


def _rows_by_text(blocks: Sequence[Tensor], lengths: Sequence[int]) -> Iterator[Tensor]:
    """The weights of every text, (attention_head, query, key), without the padding a block of
    several texts has.
    """
    rows = (row for block in blocks for row in block)
    for row, length in zip(rows, lengths, strict=True):
        yield row[:, :length, :length]
