"""The search by hashing finds the pairs that comparing every text with every other finds."""

import random
from itertools import combinations

import pytest

from litotes.data import near_duplicates as module
from litotes.data.near_duplicates import near_duplicates

WORDS = [f"{start}{end}" for start in "bcdfghjklm" for end in ("an", "el", "is", "or", "um")]


def jaccard(one: str, other: str) -> float:
    mine, yours = (
        {tuple(words[n : n + 3]) for n in range(len(words) - 2)}
        for words in (one.split(), other.split())
    )
    return len(mine & yours) / len(mine | yours)


def test_the_pairs_are_those_of_the_full_comparison() -> None:
    draw = random.Random(3)
    texts = []
    for _ in range(60):
        words = draw.choices(WORDS, k=draw.randint(3, 60))
        for n_changes in (0, 1, 2, 5):  # similarities from nearly 1 down to about 0.4
            changed = list(words)
            for _ in range(n_changes):
                changed[draw.randrange(len(changed))] = draw.choice(WORDS)
            texts.append(" ".join(changed))
    wanted = {
        pair
        for pair in combinations(range(len(texts)), 2)
        if jaccard(texts[pair[0]], texts[pair[1]]) >= 0.8
    }
    found = near_duplicates(texts)
    assert 50 < len(wanted) < 300, "the made texts hold both kinds of pairs"
    assert set(found.pairs) == wanted
    assert found.is_complete


def test_punctuation_does_not_count_and_word_order_does() -> None:
    assert near_duplicates(
        ["well, this is fine.", "well this is fine!", "fine is this well"]
    ).pairs == ((0, 1),)


@pytest.mark.parametrize(
    "texts", [[], ["one text only here"], ["too short", "too short!"], ["", "!!! ???"]]
)
def test_nothing_to_compare(texts: list[str]) -> None:
    assert near_duplicates(texts) == module.NearDuplicates((), is_complete=True)


def test_the_search_stops_at_its_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CANDIDATES", 10)
    found = near_duplicates([f"the same old story again{'!' * n}" for n in range(8)])  # 28 pairs
    assert (len(found.pairs), found.is_complete) == (10, False)
