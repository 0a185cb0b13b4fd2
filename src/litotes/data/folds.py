"""Folds for cross-fitting: a model trained on the others has seen nothing like a fold's texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.keys import plain_words
from litotes.data.near_duplicates import near_duplicates
from litotes.data.splitting import Block, block_order, blocks_of


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
    fold_of = _deal(blocks, n_train=len(train), n_folds=n_folds)
    folds: dict[int, int] = {}
    other_folds: dict[int, int | None] = {}
    end_of_others = len(train) + len(others)
    for block, fold in zip(blocks, fold_of, strict=True):
        is_apart = any(place >= end_of_others for place in block.members)
        for place in block.members:
            if place < len(train):
                assert fold is not None
                folds[place] = fold
            elif place < end_of_others and not is_apart:
                other_folds[place - len(train)] = fold
    in_order = tuple(folds[place] for place in range(len(train)))
    return Folds(in_order, dict(sorted(other_folds.items())), near.is_complete)


def _deal(blocks: Sequence[Block], *, n_train: int, n_folds: int) -> list[int | None]:
    """The fold of each block: the smallest so far; None for one without training texts."""
    sizes = [0] * n_folds
    dealt: dict[Block, int] = {}
    for block in sorted(blocks, key=block_order):
        n = sum(place < n_train for place in block.members)
        if n:
            fold = min(range(n_folds), key=sizes.__getitem__)
            sizes[fold] += n
            dealt[block] = fold
    if not all(sizes):
        raise UserError(
            f"The {n_train} training texts cannot be divided into {n_folds} folds: equal texts,"
            " near-equal ones and those of a group must stay together. Take fewer folds, or more"
            " texts."
        )
    return [dealt.get(block) for block in blocks]


def _same_letters(words: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of texts that differ in blanks and signs alone, however short."""
    first: dict[str, int] = {}
    pairs = []
    for place, text in enumerate(words):
        letters = text.replace(" ", "")
        if letters and first.setdefault(letters, place) != place:
            pairs.append((first[letters], place))
    return pairs
