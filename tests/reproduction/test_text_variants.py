"""reproduction/text_variants.py: what is made of a text, and of which parts."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
import torch

from reproduction.text_variants import (
    CHANGES,
    MOST_WORDS,
    Base,
    cut,
    find_neighbours,
    join,
    make_variants,
    splice,
    swap,
    thin,
)

TEXT = "The soup was cold, but the waiter was lovely, and the bill was small."
NEAR = {"soup": ["stew"], "cold": ["warm", "icy"], "waiter": ["cook"], "bill": ["cost"]}


def test_neighbours_are_near_either_way_round() -> None:
    words = ["clean", "spotless", "queue"]
    vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 1.0]])
    assert find_neighbours(words, vectors) == {"clean": ["spotless"], "spotless": ["clean"]}


def test_a_swapped_word_is_a_neighbour_and_keeps_its_capital() -> None:
    made = {swap("Soup was cold", [], NEAR, Random(seed)) for seed in range(200)}
    assert made == {
        f"{first} was {last}" for first in ("Soup", "Stew") for last in ("cold", "warm", "icy")
    }


def test_a_cut_text_is_a_run_of_its_clauses() -> None:
    for seed in range(20):
        made = cut(TEXT, [], {}, Random(seed))
        assert made in TEXT
        assert 0 < len(made) < len(TEXT)


def test_joined_and_spliced_texts_are_of_the_others_alone() -> None:
    others = ["Late again.", "Lovely view, though."]
    words = Counter(f"{TEXT} {' '.join(others)}".split())
    for seed in range(20):
        for change in (join, splice):
            made = change(TEXT, others, {}, Random(seed)).split()
            assert set(made) <= set(words)
            assert len(made) <= MOST_WORDS


def test_a_thinned_text_has_fewer_words_in_their_order() -> None:
    made = thin(TEXT, [], {}, Random(1)).split()
    left = iter(TEXT.split())
    assert all(word in left for word in made)
    assert len(made) < len(TEXT.split())


@pytest.fixture
def bases() -> list[Base]:
    return [
        Base(f"Number {number}. {TEXT}", kind, fold, source=f"{kind} {fold}")
        for number, (kind, fold) in enumerate([("own", 0), ("own", 1), ("older", 0)] * 4)
    ]


def test_variants_are_new_and_keep_kind_fold_and_source(bases: list[Base]) -> None:
    made = make_variants(bases, NEAR, n_each=len(CHANGES), seed=0)
    texts = [one.text for one in made]
    assert len(texts) == len(set(texts))
    assert not set(texts) & {base.text for base in bases}
    assert {(one.kind, one.fold, one.source) for one in made} == {
        (base.kind, base.fold, base.source) for base in bases
    }
    assert made == make_variants(bases, NEAR, n_each=len(CHANGES), seed=0)
    assert made != make_variants(bases, NEAR, n_each=len(CHANGES), seed=1)


def test_parts_of_a_joined_text_share_a_fold(bases: list[Base]) -> None:
    fold_of = {base.text.split(".")[0]: (base.kind, base.fold) for base in bases}
    for one in make_variants(bases, {}, n_each=len(CHANGES), seed=0):
        parts = [name for name in fold_of if f"{name}." in one.text]
        assert {fold_of[name] for name in parts} <= {(one.kind, one.fold)}
