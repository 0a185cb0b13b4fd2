"""reproduction/builtin_more_texts.py: texts made from others, and what is answered to them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT, Corpus, example_key, text_key
from litotes.data.sources.corpora import ratings
from litotes.training.lessons import Lessons
from reproduction import builtin_more_texts
from reproduction.builtin_more_texts import (
    allowed_ratings,
    dress,
    ours_and_older,
    passages,
    respell,
    stated_sarcasm,
    with_ratings,
    with_repeats,
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
    student = SimpleNamespace(data=SimpleNamespace(avoid=()))
    rare = {"sarcasm": {"sarcastic": 0.05}}
    reviews = dict.fromkeys(("film reviews", "product reviews", "editorials"), rare)
    recipe = SimpleNamespace(student=student, distill=SimpleNamespace(prevalence=reviews))
    return SimpleNamespace(data=data, recipe=recipe)


def lessons_of(sentiment: dict[str, tuple[float, ...]]) -> Lessons:
    return Lessons({"sentiment": sentiment, "sarcasm": {}}, (), share=0.5, temperature=1.0)


@pytest.mark.parametrize("text", ["It rained.", "It rained", "Really?!", "...", "a"])
def test_a_repeated_text_counts_as_another(text: str) -> None:
    keys = {text_key(one) for one in (text, *respell(text))}
    assert len(keys) == 3


def test_a_dressed_text_keeps_its_words() -> None:
    random = Random(1)
    text = "The plumber came three days late."
    dressed = {dress(text, random) for _ in range(40)}
    assert len(dressed) > 10
    assert all("The plumber came three days late" in one for one in dressed)
    for mark in ("@user", "#plumber", "http"):
        assert any(mark in one for one in dressed), mark


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
    heard = partial(stated_sarcasm, plan_of())
    made = {one.text: one.answers for one in passages(plan_of(), rated, heard)}
    assert set(made) == {"Works well. Looks awful.", "Too loud. Far too loud."}
    assert made["Works well. Looks awful."]["sentiment"] == pytest.approx((0.5, 0.5))
    negative, positive = made["Too loud. Far too loud."]["sentiment"]
    assert negative > 0.95
    assert negative + positive == pytest.approx(1)
    assert made["Too loud. Far too loud."]["sarcasm"] == pytest.approx((0.95, 0.05))


def test_ratings_are_learned_but_for_documents_that_are_tested(tmp_path: Path) -> None:
    folder = tmp_path / "vader"
    folder.mkdir()
    lines = {
        "amazonReviewSnippets_GroundTruth.txt": (
            "1_1\t2.0\tworks well.\n1_2\t0.1\tit is blue.\n2_1\t-2.0\ttoo loud.\n"
        ),
        "movieReviewSnippets_GroundTruth.txt": "1\t-0.2\ta film.\n",
        "nytEditorialSnippets_GroundTruth.txt": "1_1\t0.0\ta city.\n",
        "tweets_GroundTruth.txt": "1\t1.5\tsunny!\n",
    }
    for name, text in lines.items():
        (folder / name).write_text(text)
    assert [rating for one, rating in ratings(folder) if one.text == "it is blue."] == [0.1]
    learned = Example("works well.", {"sentiment": "positive"}, source="product reviews")
    loud = Example("too loud.", {}, source="product reviews", group="product reviews 2")
    plan = plan_of(learned, test=(loud,))
    found = with_ratings(
        lessons_of({"works well.": (0.4, 0.6)}), plan, allowed_ratings(plan, tmp_path)
    )
    texts = {one.text for one in found.unlabelled}
    assert texts == {"it is blue.", "works well. it is blue.", "a film.", "a city.", "sunny!"}
    answers = found.answers["sentiment"]
    assert answers["works well."][1] == pytest.approx(0.79, abs=0.01)  # half the teachers'
    assert answers["a city."] == (0.5, 0.5)
    assert "sunny!" not in found.answers["sarcasm"]
    assert "too loud." not in answers


def test_older_texts_are_repeated_with_label_and_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Example("Ours.", {"sentiment": "positive"})
    monkeypatch.setattr(builtin_more_texts, "load", lambda name: [ours])
    old = Example("Old.", {"sentiment": "negative"})
    lessons = lessons_of({"old.": (0.6, 0.4)})
    plan = plan_of(ours, old)
    written, older = ours_and_older(plan.data.train)
    assert written == [ours]
    found = with_repeats(lessons, plan, older, n_copies=2)
    assert [one.text for one in found.unlabelled] == ["Old .", "Old"]
    for one in found.unlabelled:
        assert found.answers["sentiment"][example_key(one)] == pytest.approx((0.8, 0.2))
