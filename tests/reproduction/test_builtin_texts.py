"""Texts that students of the built-in model learn from."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT, Corpus, text_key
from litotes.encoder.pretrained import Pretrained
from reproduction.builtin import texts
from reproduction.builtin.texts import (
    ASKED,
    CHANGES,
    FILES,
    FOLDER,
    MOST_WORDS,
    OLDER,
    OWN,
    PASSAGE,
    PLAIN,
    VARIANT,
    Base,
    _readings,
    cut,
    dress,
    find_neighbours,
    join,
    learned_rows,
    make_variants,
    read_texts,
    reading_of,
    splice,
    swap,
    thin,
    word_vectors,
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


def test_a_dressed_text_keeps_its_words() -> None:
    random = Random(1)
    text = "The plumber came three days late."
    dressed = {dress(text, random) for _ in range(40)}
    assert len(dressed) > 10
    assert all("The plumber came three days late" in one for one in dressed)
    for mark in ("@user", "#plumber", "http"):
        assert any(mark in one for one in dressed), mark


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


def test_a_passage_has_the_fold_of_its_document(plan: Any) -> None:
    rows = {row.text: row for row in learned_rows(plan, Path())}
    passage = rows["Sentence 0. Sentence 1."]
    assert passage.kind == PASSAGE
    assert passage.fold == rows["Sentence 1."].fold
    assert passage.sarcasm is not None


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


def test_a_word_has_the_vector_of_its_pieces(tiny: Pretrained) -> None:
    together = word_vectors(["tea", "queue", "great"], tiny.encoder, tiny.tokenizer)
    alone = word_vectors(["queue"], tiny.encoder, tiny.tokenizer)
    assert together[1].tolist() == pytest.approx(alone[0].tolist(), abs=1e-5)


LEVELS = {0.1, 0.3, 0.5, 0.7, 0.9, 0.98}


@pytest.mark.parametrize("name", sorted(set(FILES.values())))
def test_every_row_names_a_text_and_a_level(name: str) -> None:
    found = _readings(name)
    assert all(re.fullmatch(r"[0-9a-f]{10}", key) for key in found)
    assert set(found.values()) == LEVELS


def test_a_text_is_found_however_it_is_cased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = sha256(text_key("Oh good, rain.").encode()).hexdigest()[:10]
    (tmp_path / "vader.csv").write_text(f"text,percent\n{key},70\n")
    monkeypatch.setattr(texts, "FOLDER", tmp_path)
    _readings.cache_clear()
    try:
        assert reading_of(Example("oh GOOD, rain.", {}, source="tweets")) == 0.7
        assert reading_of(Example("It rains.", {}, source="tweets")) == PLAIN
        assert reading_of(Example("Oh good, rain.", {}, source="Reddit")) is None
    finally:
        _readings.cache_clear()


def test_the_readme_names_the_levels_there_are() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(str(round(100 * level)) in told for level in (PLAIN, *LEVELS))


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


def test_neighbours_of_one_document_are_joined_by_their_mean_rating() -> None:
    rated = [
        (Example(text, {}, source="product reviews", group=group), rating)
        for text, group, rating in (
            ("Works well.", "one", 2.0),
            ("Looks awful.", "one", -2.0),
            ("Too loud.", "other", -1.0),
            ("Far too loud.", "other", -3.0),
        )
    ]
    made = {one.text: one.answers for one in texts.passages(plan_of(), rated, lambda some: {})}
    assert set(made) == {"Works well. Looks awful.", "Too loud. Far too loud."}
    assert made["Works well. Looks awful."]["sentiment"] == pytest.approx((0.5, 0.5))
    assert made["Too loud. Far too loud."]["sentiment"] == pytest.approx((0.982, 0.018), abs=1e-3)


def test_ratings_are_learned_but_for_documents_that_are_tested(tmp_path: Path) -> None:
    folder = tmp_path / "vader"
    folder.mkdir()
    for name, lines in {
        "amazonReview": "1_1\t2.0\tworks well.\n2_1\t-2.0\ttoo loud.\n",
        "movieReview": "1\t-0.2\ta film.\n",
        "nytEditorial": "1_1\t0.0\ta city.\n",
    }.items():
        (folder / f"{name}Snippets_GroundTruth.txt").write_text(lines)
    (folder / "tweets_GroundTruth.txt").write_text("1\t1.5\tsunny!\n")
    loud = Example("too loud.", {}, source="product reviews", group="product reviews 2")
    found = texts.allowed_ratings(plan_of(test=(loud,)), tmp_path)
    assert {(one.text, rating) for one, rating in found} == {
        ("works well.", 2.0),
        ("a film.", -0.2),
        ("a city.", 0.0),
        ("sunny!", 1.5),
    }
