"""What a walk shows to whoever looks on: the attention of one layer, and the same text by text.

`Encoder.walk(…, observer=…)` hands over a trace of each layer. Nothing is kept between layers: who looks on
decides what to remember.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from litotes.attention.pruning import AttentionOutput
from litotes.attention.survivors import Survivors


@dataclass(frozen=True)
class TextAttention:
    """One text in one layer, live pieces alone.

    heads: the attention heads shown, by the numbers they had before any left.
    weights: (attention_head, query, key). value, mixed: (attention_head, piece, head_width), with
    mixed = weights · value.
    origin: the place in the text of each piece that came in; -1 for one that stands for those gone.
    (piece,)
    stayed: the places of those that went on. (piece,)
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

    hidden: what came in, (piece, width). heads: the attention heads of this layer's block, by their
    first numbers.
    before, after: what was known about the pieces that came in, and about those that went on.
    """

    layer: int
    hidden: Tensor
    heads: Sequence[int]
    attention: AttentionOutput
    before: Survivors
    after: Survivors

    def by_text(self) -> Iterator[TextAttention]:
        """The texts of the batch, in order."""
        came, went = self.before.layout, self.after.layout
        parts = zip(
            _rows_by_text(self.attention.weights, came.lengths),
            self.attention.value.split(came.lengths),
            self.attention.mixed.split(came.lengths),
            self.before.origin.split(came.lengths),
            self.after.origin.split(went.lengths),
            strict=True,
        )
        for text, (weights, value, mixed, origin, stayed) in enumerate(parts):
            heads = (
                list(self.heads) if self.before.heads is None else self.before.heads[text].tolist()
            )
            if self.before.heads is not None:  # heads that are gone gather nothing
                value, mixed = value[:, heads], mixed[:, heads]
            yield TextAttention(
                self.layer,
                tuple(heads),
                weights,
                value.transpose(0, 1),
                mixed.transpose(0, 1),
                origin,
                stayed,
            )


Observer = Callable[[LayerTrace], None]


def _rows_by_text(blocks: Sequence[Tensor], lengths: Sequence[int]) -> Iterator[Tensor]:
    """The weights of every text, (attention_head, query, key), without the padding a block of
    several texts has.
    """
    rows = (row for block in blocks for row in block)
    for row, length in zip(rows, lengths, strict=True):
        yield row[:, :length, :length]
