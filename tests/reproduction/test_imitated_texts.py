"""reproduction/imitated_texts.py: what is known of a text, and which texts are asked about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litotes.core.values import Example
from litotes.encoder.pretrained import Pretrained
from reproduction import imitated_texts
from reproduction.imitated_texts import (
    ASKED,
    OLDER,
    OWN,
    PASSAGE,
    VARIANT,
    learned_rows,
    read_texts,
    word_vectors,
    write_texts,
)
from reproduction.text_variants import Base
from tests.reproduction.test_builtin_more_texts import plan_of

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
    module = imitated_texts
    monkeypatch.setattr(module, "allowed_ratings", lambda plan, data: RATED)
    monkeypatch.setattr(module, "ours_and_older", lambda texts: ([OURS, NEUTRAL], [TWEET]))
    monkeypatch.setattr(module, "reading_of", lambda one: READ.get(one.text))
    even = {"sentiment": {"the bus leaves at nine.": (0.5, 0.5)}}
    monkeypatch.setattr(module, "with_even_answers", lambda known, plan: even)

    def folds(examples: Sequence[Example], *, n_folds: int, seed: int) -> Any:
        return SimpleNamespace(train=[number % n_folds for number in range(len(examples))])

    monkeypatch.setattr(module, "assign_folds", folds)
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
    monkeypatch.setattr(imitated_texts, "asked_texts", lambda plan, data: [TESTED])
    monkeypatch.setattr(imitated_texts, "_neighbours", lambda texts, teacher: {})
    monkeypatch.setattr(imitated_texts, "make_variants", lambda *given, **more: made)
    write_texts(plan, Path(), tmp_path / "texts.gz", teacher="none")
    rows = read_texts(tmp_path / "texts.gz")
    assert [row.text for row in rows if row.kind == VARIANT] == ["Lovely, sun again."]
    assert [row.text for row in rows if row.kind == ASKED] == [TESTED.text]


def test_a_word_has_the_vector_of_its_pieces(tiny: Pretrained) -> None:
    together = word_vectors(["tea", "queue", "great"], tiny.encoder, tiny.tokenizer)
    alone = word_vectors(["queue"], tiny.encoder, tiny.tokenizer)
    assert together[1].tolist() == pytest.approx(alone[0].tolist(), abs=1e-5)
