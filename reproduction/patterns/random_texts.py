"""Texts without words: where sentences and phrases end, where delimiters and punctuation stand.

What attention maps are made on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litotes.core.numbers import Counts

_MOST_SENTENCES = 4
_SHORTEST_SENTENCE = 4
_LONGEST_PHRASE = 9


@dataclass(frozen=True)
class RandomText:
    """sentences, phrases, words: the number of what each piece belongs to, (piece,); delimiters,
    punctuation: places of pieces.
    """

    sentences: Counts
    phrases: Counts
    words: Counts
    delimiters: Counts
    punctuation: Counts

    def __len__(self) -> int:
        return len(self.sentences)


def random_text(n_pieces: int, rng: np.random.Generator) -> RandomText:
    """[CLS], then one to four sentences (the texts of a pair among them), each closed by [SEP] or a
    full stop.
    """
    most = max(1, min(_MOST_SENTENCES, n_pieces // _SHORTEST_SENTENCE))
    n_sentences = int(rng.choice([1, 2, 2, 3, 4])) if most > 1 else 1
    ends = _ends(n_pieces, min(n_sentences, most), rng)
    is_delimiter = rng.random(len(ends)) < 0.5  # a full stop otherwise
    is_delimiter[-1] = True
    loose = rng.choice(n_pieces, size=1 + n_pieces // 16, replace=False)
    return RandomText(
        sentences=_numbered(n_pieces, ends),
        phrases=_numbered(n_pieces, _phrase_ends(n_pieces, rng)),
        # some come often
        words=(
            n_pieces * rng.uniform(0.5, 3.0) * rng.random(n_pieces) ** rng.uniform(1.0, 4.0)
        ).astype(np.int64),
        delimiters=np.concatenate([[0], ends[is_delimiter]]),
        punctuation=np.concatenate([ends[~is_delimiter], loose]),
    )


def _ends(n_pieces: int, n_parts: int, rng: np.random.Generator) -> Counts:
    """The last pieces of parts that are uneven, but none of them tiny."""
    lengths = rng.dirichlet(np.full(n_parts, 4.0)) * (
        n_pieces - n_parts * min(_SHORTEST_SENTENCE, n_pieces // n_parts)
    )
    ends = (
        np.cumsum(lengths + min(_SHORTEST_SENTENCE, n_pieces // n_parts)).round().astype(np.int64)
        - 1
    )
    ends[-1] = n_pieces - 1
    return ends


def _phrase_ends(n_pieces: int, rng: np.random.Generator) -> Counts:
    longest = int(rng.integers(3, _LONGEST_PHRASE + 1))
    return np.cumsum(rng.integers(1, longest + 1, size=n_pieces)) - 1


def _numbered(n_pieces: int, ends: Counts) -> Counts:
    return np.searchsorted(ends, np.arange(n_pieces))
