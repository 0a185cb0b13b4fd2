"""Texts become pieces (sub-words) with the `tokenizers` library; nothing is cut in silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from litotes.errors import UserError


@dataclass(frozen=True)
class Pieces:
    """One text (or pair) as piece numbers with their segments; `truncated` when it was longer than the encoder can read."""

    ids: list[int]
    segments: list[int]
    truncated: bool


class PieceTokenizer:
    """A `tokenizer.json` with our own length limit.

    Files often carry truncation and padding of their own (the bundled one: 128 pieces); both are switched off.
    """

    def __init__(self, file: Path, *, max_pieces: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{file}: not a readable tokenizer.json ({error}). Save it again with a fast tokenizer.") from error
        self.max_pieces = max_pieces
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=max_pieces)

    @property
    def n_vocabulary(self) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def to_json(self) -> str:
        """The file's content without the length settings, which are ours to make."""
        self._tokenizer.no_truncation()
        content: str = self._tokenizer.to_str()
        self._tokenizer.enable_truncation(max_length=self.max_pieces)
        return content

    def encode(self, texts: Sequence[str], pairs: Sequence[str | None] | None = None) -> list[Pieces]:
        """Pieces of every text, special pieces included; a pair is cut at its longer side first."""
        inputs = [text if pair is None else (text, pair) for text, pair in zip(texts, pairs or [None] * len(texts), strict=True)]
        encodings = self._tokenizer.encode_batch(inputs)
        return [Pieces(encoding.ids, encoding.type_ids, bool(encoding.overflowing)) for encoding in encodings]

    def written(self, texts: Sequence[str]) -> list[list[str]]:
        """Every text as the pieces an encoder would read of it, in writing (`##ing`); the special pieces are left out."""
        encodings = self._tokenizer.encode_batch(list(texts))
        return [
            [piece for piece, is_special in zip(encoding.tokens, encoding.special_tokens_mask, strict=True) if not is_special]
            for encoding in encodings
        ]
