"""Signs of features: they match what their rewrites write, and not what these were given."""

from __future__ import annotations

import pytest

from litotes.data.rewrites import REWRITES
from litotes.data.rewrites.signs import SIGNS, signs_of
from litotes.data.sources import load


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_tells_the_examples_of_its_rewrites(name: str) -> None:
    sign = SIGNS[name]
    assert sign.rewrites
    n_seen = n = 0
    for rewrite in sign.rewrites:
        for before, after in REWRITES[rewrite].examples:
            assert not sign.matches(before), before
            n += 1
            n_seen += sign.matches(after)
    assert n_seen >= 2 * n / 3


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_sees_most_of_what_is_rewritten(name: str) -> None:
    n_seen = n = 0
    for example in list(load("sampler"))[:300]:
        for rewrite in SIGNS[name].rewrites:
            after = REWRITES[rewrite](example.text)
            if after != example.text:
                n += 1
                n_seen += SIGNS[name].matches(after)
    assert n_seen >= 2 * n / 3


def test_signs_of_a_text() -> None:
    assert signs_of("It ain't good, my favourite colour is sooo bad 🍴") == [
        "ain't",
        "British spelling",
        "sooo",
        "emoji",
    ]
    assert signs_of("The food was good.") == []
