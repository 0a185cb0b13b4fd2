"""Real texts of a wanted length: words in a row, taken where they make exactly so many pieces."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain, islice

from litotes.core.errors import UserError
from litotes.text.tokenizer import PieceTokenizer


def texts_of_length(
    texts: Sequence[str], tokenizer: PieceTokenizer, n_pieces: int, *, n_texts: int
) -> list[str]:
    """So many texts of exactly `n_pieces`, special pieces included, each from another place of the
    texts laid end to end.
    """
    words = list(chain.from_iterable(text.split() for text in texts))
    long_enough = words * (2 + n_pieces * 2 // len(words))  # round again where there are too few
    starts = range(0, len(words), max(1, len(words) // (8 * n_texts)))
    found = (_from(long_enough[start : start + n_pieces], tokenizer, n_pieces) for start in starts)
    chosen = list(islice((text for text in found if text is not None), n_texts))
    if not chosen:
        raise UserError(
            f"Nowhere in these texts do words in a row make {n_pieces} pieces. Give --data with"
            " more texts."
        )
    return [chosen[place % len(chosen)] for place in range(n_texts)]


def _from(words: Sequence[str], tokenizer: PieceTokenizer, n_pieces: int) -> str | None:
    """The first words that make exactly so many pieces, if the last of them does not make too many."""

    def length(n_words: int) -> int:
        (read,) = tokenizer.encode([" ".join(words[:n_words])])
        return len(read.ids) + read.truncated  # one that was cut is too long

    n_words = bisect_left(range(len(words) + 1), n_pieces, lo=1, key=length)
    return (
        " ".join(words[:n_words]) if n_words <= len(words) and length(n_words) == n_pieces else None
    )
