"""Real texts of a wanted length: words in a row, taken where they make exactly so many pieces."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain

from litotes.core.errors import UserError
from litotes.encoder.tokenizer import PieceTokenizer


def texts_of_length(
    texts: Sequence[str], tokenizer: PieceTokenizer, n_pieces: int, *, n_texts: int
) -> list[str]:
    """`n_texts` texts of exactly `n_pieces`, special pieces included, each from another place of
    the joined texts.
    """
    words = list(chain.from_iterable(text.split() for text in texts))
    long_enough = words * (2 + n_pieces * 2 // len(words))  # round again where there are too few
    starts = range(0, len(words), max(1, len(words) // (8 * n_texts)))
    chosen: list[str] = []
    for start in starts:
        text = _first_words(long_enough[start : start + n_pieces], tokenizer, n_pieces)
        chosen += [] if text is None else [text]
        if len(chosen) == n_texts:
            break
    if not chosen:
        raise UserError(
            f"Nowhere in these texts do words in a row make {n_pieces} pieces. Give --data with"
            " more texts."
        )
    return [chosen[place % len(chosen)] for place in range(n_texts)]


def _first_words(words: Sequence[str], tokenizer: PieceTokenizer, n_pieces: int) -> str | None:
    """The first words that make exactly so many pieces; None if the last of them makes too many."""

    def length(n_words: int) -> int:
        (read,) = tokenizer.encode([" ".join(words[:n_words])])
        return len(read.ids) + read.truncated  # one that was cut is too long

    n_words = bisect_left(range(len(words) + 1), n_pieces, lo=1, key=length)
    if n_words > len(words) or length(n_words) != n_pieces:
        return None
    return " ".join(words[:n_words])
