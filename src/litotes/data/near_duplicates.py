"""Near-duplicates: pairs of texts that share most of their word 3-grams.

Candidates come from MinHash signatures and locality-sensitive hashing (Broder 1997; Leskovec et
al., "Mining of Massive Datasets", chapter 3); every candidate is then verified on the 3-grams
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import Corpus, block_order, blocks_of, leak_key, plain_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

THRESHOLD = 0.8
"""The share of common 3-grams (Jaccard) from which two texts count as near-duplicates."""

MAX_CANDIDATES = 200_000
"""Where thousands of texts follow one pattern their pairs grow with the square; the search stops
here and says so.
"""

# 25 bands of 5 hashes make two texts of similarity s candidates with probability 1 - (1 - s⁵)²⁵:
# 0.99995 at 0.8, 0.06 at 0.3
_N_BANDS, _BAND_WIDTH = 25, 5
_N_HASHES = _N_BANDS * _BAND_WIDTH
_POLYNOMIAL = 0x9E3779B97F4A7C15  # odd, so that multiplying by it loses nothing modulo 2⁶⁴


@dataclass(frozen=True)
class NearDuplicates:
    """Pairs of places in the list of texts, and whether the search saw all candidates."""

    pairs: tuple[tuple[int, int], ...]
    is_complete: bool


def near_duplicates(texts: Sequence[str], *, first: int = 0) -> NearDuplicates:
    """The pairs of texts with a Jaccard similarity of `THRESHOLD` or more.

    Texts of fewer than three words are ignored. first: only pairs whose later text stands at this
    place or behind it are looked for.
    """
    found = [re.findall(r"\w+", text) for text in texts]
    places = [place for place, own in enumerate(found) if len(own) >= 3]
    if not places:
        return NearDuplicates((), is_complete=True)
    signatures = _signatures([found[place] for place in places])
    n_before = sum(place < first for place in places)
    pairs, n_candidates = [], 0
    for one, other in islice(_candidates(signatures, n_before), MAX_CANDIDATES):
        n_candidates += 1
        pair = places[one], places[other]
        mine, yours = (set(_trigrams(found[place])) for place in pair)
        if len(mine & yours) / len(mine | yours) >= THRESHOLD:
            pairs.append(pair)
    return NearDuplicates(tuple(sorted(pairs)), n_candidates < MAX_CANDIDATES)


def _trigrams(words: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    return zip(words, words[1:], words[2:], strict=False)


def _candidates(signatures: NDArray[np.uint32], n_before: int) -> Iterator[tuple[int, int]]:
    """Pairs of texts that agree in all hashes of a band, in order; those whose later text is one of
    the first n_before are left out.
    """
    tables: list[dict[bytes, list[int]]] = [{} for _ in range(_N_BANDS)]
    bands = signatures.reshape(len(signatures), _N_BANDS, _BAND_WIDTH)
    for later, own_bands in enumerate(bands):
        alike: set[int] = set()
        for table, band in zip(tables, own_bands, strict=True):
            bucket = table.setdefault(band.tobytes(), [])
            if later >= n_before:
                alike.update(bucket)
            bucket.append(later)
        for earlier in sorted(alike):
            yield earlier, later


def _signatures(words: Sequence[Sequence[str]]) -> NDArray[np.uint32]:
    """The smallest of each hash over a text's 3-grams, (text, hash)."""
    import numpy as np

    # every word is hashed once; the 3-grams of all texts lie end to end
    hashes = {word: _word_hash(word) for word in set(chain.from_iterable(words))}
    text_hashes = ([hashes[word] for word in text] for text in words)
    parts = chain.from_iterable(chain.from_iterable(map(_trigrams, text_hashes)))
    first, second, third = np.fromiter(parts, np.uint64).reshape(-1, 3).T
    polynomial = np.uint64(_POLYNOMIAL)
    trigrams = (first * polynomial + second) * polynomial + third  # (trigram of all texts,)
    n_trigrams = np.array([len(text) - 2 for text in words])  # (text,)
    starts = np.cumsum(n_trigrams) - n_trigrams  # (text,)
    generator = np.random.default_rng(0)
    factors = generator.integers(0, 2**64, size=_N_HASHES, dtype=np.uint64)
    factors |= np.uint64(1)  # odd, as multiply-shift hashing asks for
    signatures = np.empty((len(words), _N_HASHES), dtype=np.uint32)
    for place, factor in enumerate(factors):
        # multiply-shift hashing: the upper half is the well-mixed one
        hashed = (trigrams * factor) >> np.uint64(32)
        signatures[:, place] = np.minimum.reduceat(hashed, starts)
    return signatures


def _word_hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest())


# Folds for cross-fitting: a model trained on the others has seen nothing like a fold's texts.


@dataclass(frozen=True)
class Folds:
    """train: the fold of each text. others: by its place, the fold of each other text; None: like
    no text of any fold. Those too near to a text kept apart are missing.

    is_complete: whether all candidates for near-equal texts were compared.
    """

    train: tuple[int, ...]
    others: Mapping[int, int | None]
    is_complete: bool


def assign_folds(
    train: Sequence[Example],
    others: Sequence[Example] = (),
    *,
    apart: Sequence[Example] = (),
    n_folds: int,
    seed: int,
) -> Folds:
    """Deals the training texts to folds of about the same size; cells and labels are spread evenly.

    Equal texts, texts of a group and near-equal texts (`near_duplicates`) share a fold.
    """
    examples = [*train, *others, *apart]
    words = [plain_words(example) for example in examples]
    near = near_duplicates(words)
    blocks = blocks_of(examples, seed=seed, pairs=[*near.pairs, *_same_letters(words)])
    sizes = [0] * n_folds
    fold_of: dict[int, int] = {}  # of all that stand in a block with a training text
    for block in sorted(blocks, key=block_order):
        if n := sum(place < len(train) for place in block.members):
            fold = min(range(n_folds), key=sizes.__getitem__)  # the smallest so far
            sizes[fold] += n
            fold_of |= dict.fromkeys(block.members, fold)
    if not all(sizes):
        raise UserError(
            f"The {len(train)} training texts cannot be divided into {n_folds} folds: equal texts,"
            " near-equal ones and those of a group must stay together. Take fewer folds, or more"
            " texts."
        )
    end = len(train) + len(others)
    with_apart = {place for block in blocks if max(block.members) >= end for place in block.members}
    other_folds = {
        place - len(train): fold_of.get(place)
        for place in range(len(train), end)
        if place not in with_apart
    }
    return Folds(
        tuple(fold_of[place] for place in range(len(train))), other_folds, near.is_complete
    )


def _same_letters(words: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of texts that differ in blanks and signs alone, however short."""
    first: dict[str, int] = {}
    pairs = []
    for place, text in enumerate(words):
        letters = text.replace(" ", "")
        if letters and first.setdefault(letters, place) != place:
            pairs.append((first[letters], place))
    return pairs


# Removes training texts that are also texts of a later test, in whatever spelling.
#
# Corpora of different names often draw on the same reviews or posts: of the 872 development
# sentences
# of SST-2, 737 are among VADER's film reviews, written with other quotes, blanks and capitals. A
# score on them says nothing about a model that has read them.


def remove_texts_of(corpus: Corpus, tests: Sequence[Corpus]) -> tuple[Corpus, int]:
    """The corpus without training texts of the tests, and how many those were.

    A training text is removed when it is, exactly or nearly, in a test or valid split of `tests`.
    """
    asked = [example for test in tests for example in test if example.split != "train"]
    tested = list(map(plain_words, asked))
    training = {n: plain_words(one) for n, one in enumerate(corpus) if one.split == "train"}
    found = near_duplicates([*training.values(), *tested], first=len(training))
    if not found.is_complete:  # a pair that was not compared would be trained on
        raise UserError(
            f"{corpus.name} has too many texts that resemble those to avoid. Take repeated texts"
            " out, or avoid fewer tests."
        )
    places = list(training)
    removed = {places[one] for one, _ in found.pairs if one < len(places)}
    # `can not` and `cannot` are equal
    letters = {text.replace(" ", "") for text in tested} - {""}
    keys = set(map(leak_key, asked))  # texts without any letter, and pairs the other way round
    for place, text in training.items():
        if text.replace(" ", "") in letters or leak_key(corpus.examples[place]) in keys:
            removed.add(place)
    kept = tuple(example for place, example in enumerate(corpus) if place not in removed)
    return replace(corpus, examples=kept), len(removed)
