"""A text as models read it."""

from __future__ import annotations

from dataclasses import dataclass

from litotes.encoder.tokenizer import Pieces


@dataclass(frozen=True)
class TokenizedText:
    """A text and its pieces, once for each model that reads it.

    problem: why there are no pieces of a text that cannot be asked about. pair: the second text of
    a pair.
    """

    text: str
    pieces: tuple[Pieces, ...]
    problem: str | None = None
    pair: str | None = None

    @property
    def n_pieces(self) -> int:
        return sum(len(own.ids) for own in self.pieces)

    @property
    def is_truncated(self) -> bool:
        return any(own.truncated for own in self.pieces)

    @property
    def is_unreadable(self) -> bool:
        return any(own.unreadable for own in self.pieces)
