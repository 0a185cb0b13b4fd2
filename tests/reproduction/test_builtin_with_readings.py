"""reproduction/builtin_with_readings.py: whose answers are learned, what is told of mixtures."""

from __future__ import annotations

import pytest

from litotes.core.values import Example
from reproduction import builtin_with_readings
from reproduction.builtin_with_readings import (
    EDITIONS,
    MIXTURES,
    WAYS,
    _about,
    first_lessons,
    heard_in,
    readers_lessons,
)
from tests.reproduction.test_builtin_more_texts import plan_of

READ = {"Oh good.": 0.9, "It rains.": 0.02}


@pytest.fixture(autouse=True)
def _readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_with_readings, "reading_of", lambda one: READ.get(one.text))


def test_a_passage_is_as_sarcastic_as_its_most_sarcastic_sentence() -> None:
    sentences = [Example(text, {}) for text in ("It rains.", "Oh good.", "Never read.")]
    assert heard_in(sentences)["sarcasm"] == pytest.approx((0.1, 0.9))
    assert heard_in(sentences[2:]) == {}


def test_readers_or_the_first_edition_are_heard_of_older_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = Example("Ours.", {"sentiment": "positive"})
    old = Example("Oh good.", {}, source="film reviews")
    answers = {
        "sentiment": {"ours.": (0.4, 0.6), "oh good.": (0.5, 0.5)},
        "sarcasm": {"ours.": (0.7, 0.3), "oh good.": (1.0, 0.0)},
    }
    module = builtin_with_readings
    monkeypatch.setattr(module, "answer_all", lambda model, texts: answers)
    monkeypatch.setattr(module, "load_model", lambda folder: None)
    monkeypatch.setattr(module, "ours_and_older", lambda texts: ([ours], [old]))
    monkeypatch.setattr(module, "with_even_answers", lambda known, plan: known)
    monkeypatch.setattr(module, "with_known_prevalence", lambda known, plan: known)
    plan = plan_of(ours, old)
    rated = [(old, -1.0)]
    by_readers = readers_lessons(plan, rated)
    assert by_readers.answers["sarcasm"]["ours."] == (0.7, 0.3)
    assert by_readers.answers["sarcasm"]["oh good."] == pytest.approx((0.1, 0.9))
    once = by_readers.answers["sentiment"]["oh good."][0]
    again = first_lessons(by_readers, plan, rated).answers
    assert again["sarcasm"] == {"ours.": (0.7, 0.3)}
    assert 0.5 < once < again["sentiment"]["oh good."][0]


def test_mixtures_are_of_what_there_is_and_told() -> None:
    known = {*WAYS, *EDITIONS}
    assert all(set(parts) <= known for parts in MIXTURES)
    assert all(set(course.begins_as) <= known for course in WAYS.values())
    found = {"n_texts": {"reserved": 1000, "other tweets": 234}}
    told = _about((*WAYS, "edition 3"), found)
    assert told.startswith(f"The third edition, trained on in {len(WAYS)} ways")
    assert "and, for 0.25, its own." in told
    assert "1,234 texts" in told
