"""Folds that equal and near-equal texts never leave."""

from __future__ import annotations

from collections import Counter

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.near_duplicates import assign_folds

MOODS = ("calm", "angry")


def numbered(n: int, first: int = 0) -> list[Example]:
    """Texts that have hardly a word in common."""
    return [
        Example(f"w{i}a w{i}b w{i}c w{i}d w{i}e w{i}f w{i}g", {"mood": MOODS[i % 4 == 0]})
        for i in range(first, first + n)
    ]


def test_folds_are_even_in_size_and_in_labels() -> None:
    examples = numbered(90)
    folds = assign_folds(examples, n_folds=3, seed=0)
    assert Counter(folds.train) == {0: 30, 1: 30, 2: 30}
    angry = [
        fold
        for fold, one in zip(folds.train, examples, strict=True)
        if one.labels["mood"] == "angry"
    ]
    assert max(Counter(angry).values()) - min(Counter(angry).values()) <= 1


def test_the_same_texts_get_the_same_folds_and_another_seed_others() -> None:
    examples = numbered(40)
    folds = assign_folds(examples, n_folds=4, seed=1)
    assert folds == assign_folds(examples, n_folds=4, seed=1)
    turned = assign_folds(examples[::-1], n_folds=4, seed=1)
    assert turned.train[::-1] == folds.train
    assert assign_folds(examples, n_folds=4, seed=2).train != folds.train


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Great tea!", "great  TEA!"),
        ("it’s a can not", "It's a cannot"),
        ("one two three four five six seven eight nine ten eleven", None),
    ],
)
def test_equal_and_nearly_equal_texts_share_a_fold(one: str, other: str | None) -> None:
    other = other or one + " twelve"
    for seed in range(12):  # by chance they would be together once in three
        examples = [
            Example(one, {"mood": "calm"}),
            *numbered(20),
            Example(other, {"mood": "angry"}),
        ]
        folds = assign_folds(examples, n_folds=3, seed=seed)
        assert folds.train[0] == folds.train[-1]


def test_other_texts_go_where_their_like_is() -> None:
    train = numbered(12)
    like = Example(train[5].text + " more", {})
    unlike = Example("nothing of the kind was ever said here", {})
    hidden = Example("the answer to the test is in these words", {})
    near_hidden = Example("The answer to the test is in these words!", {})
    folds = assign_folds(train, [like, unlike, near_hidden], apart=[hidden], n_folds=3, seed=0)
    assert folds.others == {
        0: folds.train[5],
        1: None,
    }  # the third is too near to a text kept apart


def test_a_group_stays_together() -> None:
    train = [
        Example(one.text, one.labels, group=f"g{i // 4}") for i, one in enumerate(numbered(24))
    ]
    folds = assign_folds(train, n_folds=3, seed=0)
    assert all(len(set(folds.train[start : start + 4])) == 1 for start in range(0, 24, 4))


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(UserError, match="3 folds"):
        assign_folds(
            [Example("tea", {}), Example("Tea ", {}), Example("queue", {})], n_folds=3, seed=0
        )
