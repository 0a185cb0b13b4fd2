"""Texts that students of the built-in model learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT, Corpus
from reproduction.builtin import texts
from reproduction.builtin.texts import (
    ASKED,
    CHANGES,
    MOST_WORDS,
    OLDER,
    OWN,
    PASSAGE,
    VARIANT,
    Base,
    cut,
    join,
    learned_rows,
    make_variants,
    read_texts,
    splice,
    swap,
    thin,
    write_texts,
)


def plan_of(*train: Example, test: tuple[Example, ...] = ()) -> Any:
    """As much of a plan as is looked at."""
    tasks = {task.name: task for task in (SENTIMENT, SARCASM)}
    data = SimpleNamespace(
        train=Corpus("texts", train, tasks),
        held_out=None,
        reserved=None,
        test=Corpus("tests", test, tasks),
    )
    recipe = SimpleNamespace(data=SimpleNamespace(avoid=()))
    return SimpleNamespace(data=data, recipe=recipe)


OURS = Example("Lovely, rain again.", {"sentiment": "negative", "sarcasm": "sarcastic"})


NEUTRAL = Example("The bus leaves at nine.", {"sarcasm": "literal"})


TWEET = Example("great, rain", {"sarcasm": "sarcastic"}, source="iSarcasm")


RATED = [
    (Example(f"Sentence {number}.", {}, source="editorials", group="a"), rating)
    for number, rating in enumerate((1.0, -0.1))
]


TESTED = Example("A test.", {"sentiment": "positive"}, split="test")


READ = {"great, rain": 0.5, "Sentence 0.": 0.1, "Sentence 1.": 0.3}


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(texts, "allowed_ratings", lambda plan, data: RATED)
    monkeypatch.setattr(texts, "ours_and_older", lambda texts: ([OURS, NEUTRAL], [TWEET]))
    monkeypatch.setattr(texts, "reading_of", lambda one: READ.get(one.text))
    even = {"sentiment": {"the bus leaves at nine.": (0.5, 0.5)}}
    monkeypatch.setattr(texts, "with_even_answers", lambda known, plan: even)

    def folds(examples: Sequence[Example], *, n_folds: int, seed: int) -> Any:
        return SimpleNamespace(train=[number % n_folds for number in range(len(examples))])

    monkeypatch.setattr(texts, "assign_folds", folds)
    return plan_of(OURS, NEUTRAL, TWEET)


def test_what_people_said_of_every_text(plan: Any) -> None:
    rows = {row.text: row for row in learned_rows(plan, Path())}
    assert (rows[OURS.text].sentiment, rows[OURS.text].sarcasm) == (0.0, 1.0)
    assert (rows[NEUTRAL.text].sentiment, rows[NEUTRAL.text].sarcasm) == (0.5, 0.0)
    assert rows[TWEET.text].sarcasm == pytest.approx(0.75)  # half by label, half by readers
    assert rows[TWEET.text].sentiment is None
    first = rows["Sentence 0."]
    assert first.sentiment == pytest.approx(1 / (1 + math.exp(-2)))
    assert (first.kind, first.older, first.sarcasm) == (OLDER, True, 0.1)
    assert rows[OURS.text].kind == OWN
    passage = rows["Sentence 0. Sentence 1."]
    assert (passage.kind, passage.fold) == (PASSAGE, rows["Sentence 1."].fold)


def test_no_variant_is_a_text_to_choose_or_test_by(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [Base("a TEST.", OWN, 0), Base("Lovely, sun again.", OWN, 1)]
    monkeypatch.setattr(texts, "asked_texts", lambda plan, data: [TESTED])
    monkeypatch.setattr(texts, "_neighbours", lambda texts, teacher: {})
    monkeypatch.setattr(texts, "make_variants", lambda *given, **more: made)
    write_texts(plan, Path(), tmp_path / "texts.gz", teacher="none")
    rows = read_texts(tmp_path / "texts.gz")
    assert [row.text for row in rows if row.kind == VARIANT] == ["Lovely, sun again."]
    assert [row.text for row in rows if row.kind == ASKED] == [TESTED.text]


TEXT = "The soup was cold, but the waiter was lovely, and the bill was small."


NEAR = {"soup": ["stew"], "cold": ["warm", "icy"], "waiter": ["cook"], "bill": ["cost"]}


def test_words_stay_those_that_were_there() -> None:
    others = ["Late again.", "Lovely view, though."]
    for change in (cut, join, splice, thin):
        for seed in range(20):
            made = change(TEXT, others, {}, Random(seed)).split()
            assert {word.rstrip(".,") for word in made} <= {
                word.rstrip(".,") for word in f"{TEXT} {' '.join(others)}".split()
            }
            assert 0 < len(made) <= MOST_WORDS
    made = {swap("Soup was cold", [], NEAR, Random(seed)) for seed in range(200)}
    assert made == {
        f"{one} was {two}" for one in ("Soup", "Stew") for two in ("cold", "warm", "icy")
    }


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
    # parts of a joined text share a fold
    fold_of = {base.text.split(".")[0]: (base.kind, base.fold) for base in bases}
    for one in made:
        parts = [name for name in fold_of if f"{name}." in one.text]
        assert {fold_of[name] for name in parts} <= {(one.kind, one.fold)}
