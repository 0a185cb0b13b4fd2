"""The recipe that is written for a table: how long it says that it takes, and what it holds out."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from litotes.data.inspection import ColumnFacts, TableFacts
from litotes.training.recipe import Recipe
from litotes.training.starter import MINUTES, Starter, make_starter


def starter(n: int, *, words: int = 10, **more: ColumnFacts) -> Starter:
    texts = ColumnFacts("review", n, n * words, Counter({f"text {place}": 1 for place in range(n)}))
    labels = ColumnFacts("mood", n, n, Counter(good=n // 2, bad=n - n // 2))
    facts = TableFacts(Path("reviews.csv"), n, texts, labels, None, None, ())
    return make_starter(replace(facts, **more), Path("reviews.toml"))


def recipe_of(made: Starter) -> Recipe:
    return Recipe.of(tomllib.loads(made.recipe), "reviews.toml")


def test_a_small_table_is_gone_through_often_and_a_large_one_within_minutes() -> None:
    small, middle, large = (starter(n) for n in (60, 2_000, 20_000))
    epochs = [recipe_of(made).training.epochs for made in (small, middle, large)]
    assert epochs[0] == 20
    assert epochs == sorted(epochs, reverse=True)
    assert 3 <= epochs[2] <= epochs[1] <= 20
    assert 0 < small.minutes < middle.minutes <= MINUTES
    # nothing is left to save: three epochs, however long they take
    assert large.minutes > MINUTES
    assert epochs[2] == 3
    assert "20,000 or more" in large.recipe
    # longer texts take longer, up to what the model reads
    assert starter(60, words=20).minutes == pytest.approx(1.9 * small.minutes, rel=0.1)
    assert starter(60, words=2_000).minutes == starter(60, words=1_000).minutes


def test_fewer_texts_hold_out_more() -> None:
    # a tenth of few texts chooses no epoch; a fifth goes to the test where there is no split
    assert recipe_of(starter(300)).training.held_out == 0.2
    assert recipe_of(starter(1_000)).training.held_out == 0.1
    split = ColumnFacts("part", 400, 400, Counter(train=300, test=100))
    assert starter(400, split=split).minutes > starter(400).minutes
