"""Near-equal texts: the pairs found are those of comparing every text with every other; equal and
near-equal ones share a fold, and are not trained on where a later test holds them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data import near_duplicates as module
from litotes.data.corpus import Corpus
from litotes.data.near_duplicates import assign_folds, near_duplicates, remove_texts_of

WORDS = [f"{start}{end}" for start in "bcdfghjklm" for end in ("an", "el", "is", "or", "um")]
LONG = (
    "The gorgeous continuation of a trilogy so huge that no column of words describes the vision of"
    " its maker at all"
)


def jaccard(one: str, other: str) -> float:
    mine, yours = (
        {tuple(words[n : n + 3]) for n in range(len(words) - 2)}
        for words in (one.split(), other.split())
    )
    return len(mine & yours) / len(mine | yours)


def test_the_pairs_are_those_of_the_full_comparison() -> None:
    draw = random.Random(3)
    texts = []
    for _ in range(40):
        words = draw.choices(WORDS, k=draw.randint(3, 50))
        for n_changes in (0, 1, 2, 5):  # similarities from nearly 1 down to about 0.4
            changed = list(words)
            for _ in range(n_changes):
                changed[draw.randrange(len(changed))] = draw.choice(WORDS)
            texts.append(" ".join(changed))
    alike = [jaccard(one, other) >= 0.8 for one, other in combinations(texts, 2)]
    pairs = combinations(range(len(texts)), 2)
    wanted = {pair for pair, is_alike in zip(pairs, alike, strict=True) if is_alike}
    found = near_duplicates(texts)
    assert 30 < len(wanted) < 200, "the made texts hold both kinds of pairs"
    assert set(found.pairs) == wanted
    assert found.is_complete
    later = near_duplicates(texts, first=100)
    assert set(later.pairs) == {(one, other) for one, other in wanted if other >= 100}


def test_punctuation_does_not_count_and_word_order_does() -> None:
    texts = ["well, this is fine.", "too short", "well this is fine!", "fine is this well", "short"]
    assert near_duplicates(texts).pairs == ((0, 2),)
    for few in ([], ["one text only here"], ["too short", "too short!"], ["", "!!! ???"]):
        assert near_duplicates(few) == module.NearDuplicates((), is_complete=True)


def test_the_search_stops_at_its_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CANDIDATES", 10)
    found = near_duplicates([f"the same old story again{'!' * n}" for n in range(8)])  # 28 pairs
    assert (len(found.pairs), found.is_complete) == (10, False)


def numbered(n: int) -> list[Example]:
    """Texts that have hardly a word in common; every fourth is angry."""
    return [
        Example(f"w{i}a w{i}b w{i}c w{i}d w{i}e w{i}f", {"mood": ("calm", "angry")[i % 4 == 0]})
        for i in range(n)
    ]


def test_folds_are_even_and_the_same_for_the_same_texts() -> None:
    examples = numbered(60)
    folds = assign_folds(examples, n_folds=3, seed=1)
    assert Counter(folds.train) == {0: 20, 1: 20, 2: 20}
    angry = Counter(folds.train[::4])
    assert max(angry.values()) - min(angry.values()) <= 1
    assert assign_folds(examples[::-1], n_folds=3, seed=1).train[::-1] == folds.train
    assert assign_folds(examples, n_folds=3, seed=2).train != folds.train
    grouped = [replace(one, group=f"g{i // 4}") for i, one in enumerate(examples)]
    train = assign_folds(grouped, n_folds=3, seed=0).train
    assert all(len(set(train[start : start + 4])) == 1 for start in range(0, 60, 4))
    with pytest.raises(UserError, match="2 training texts cannot be divided into 2 folds"):
        assign_folds([Example("tea", {}), Example("Tea ", {})], n_folds=2, seed=0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Great tea!", "great  TEA!"),
        ("it’s a can not", "It's a cannot"),
        ("a b c d e f g h i j k", "a b c d e f g h i j k l"),
    ],
)
def test_equal_and_nearly_equal_texts_share_a_fold(one: str, other: str) -> None:
    for seed in range(6):  # by chance they would be together once in three
        examples = [Example(one, {"mood": "calm"}), *numbered(20), Example(other, {})]
        folds = assign_folds(examples, n_folds=3, seed=seed).train
        assert folds[0] == folds[-1]


def test_other_texts_go_where_their_like_is() -> None:
    train = numbered(12)
    like = Example(train[5].text + " more", {})
    unlike = Example("nothing of the kind was ever said here", {})
    hidden = Example("the answer to the test is in these words", {})
    near = Example("The answer to the test is in these words!", {})
    folds = assign_folds(train, [like, unlike, near], apart=[hidden], n_folds=3, seed=0)
    # the third is too near to a text kept apart
    assert folds.others == {0: folds.train[5], 1: None}


def corpus(*texts: str, split: str = "train") -> Corpus:
    return Corpus("made", tuple(Example(text, {}, split=split) for text in texts), {})


@pytest.mark.parametrize(
    ("trained", "tested", "n_removed"),
    [
        ("It\u2019s a ``dull'' film, is n't it?", "it 's a dull film , isn't it ?", 1),
        (f"{LONG}.", LONG.replace(" at all", ""), 1),
        ("A film about kettles and what they sing", "kettles sing", 0),
        ("!!!", "???", 0),  # signs without a letter are not all the same
        ("?!", "?! ", 1),
        ("\U0001f602\U0001f602", "\U0001f602\U0001f602", 1),
        ("caf\u00e9", "cafe\u0301", 1),
    ],
)
def test_texts_of_a_later_test_are_left_out_however_they_are_spelt(
    trained: str, tested: str, n_removed: int
) -> None:
    whole = corpus("A kettle", trained)
    kept, n = remove_texts_of(whole, [corpus(tested, split="test")])
    assert n == n_removed
    assert [one.text for one in kept] == ["A kettle", trained][: 2 - n]
    # training texts of the other corpus may stay, and tests of this one
    assert remove_texts_of(whole, [corpus(tested)]) == (whole, 0)
    own = corpus(tested, split="valid")
    assert remove_texts_of(own, [corpus(tested, split="test")]) == (own, 0)


def test_a_pair_the_other_way_round_is_the_same_pair() -> None:
    one, other = Example("Is it warm?", {}, pair="No."), Example("No.", {}, pair="Is it warm?")
    tests = [Corpus("made", (replace(other, split="test"),), {})]
    assert remove_texts_of(Corpus("made", (one,), {}), tests)[1] == 1


def test_training_texts_that_resemble_each_other_do_not_hide_a_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CANDIDATES", 20)
    alike = [f"{LONG} {number}" for number in range(10)]  # 45 pairs
    copied = "A kettle that sings all day in the kitchen of a house by the sea is a friend"
    tested = corpus(f"{copied} indeed", split="test")
    assert remove_texts_of(corpus(*alike, copied), [tested])[1] == 1
    with pytest.raises(UserError, match="too many"):
        remove_texts_of(
            corpus(*alike), [corpus(*(f"{LONG} {word}" for word in "abc"), split="test")]
        )
