"""reproduction/builtin_trained_on.py: which texts came later, and what older texts' sarcasm is."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from litotes.core.progress import ignore_progress
from litotes.core.values import Example
from litotes.data.sources import load
from litotes.model.checkpoint import load_model
from litotes.training.lessons import Lessons
from reproduction import builtin_trained_on
from reproduction.builtin_trained_on import (
    LATER,
    LATEST,
    MIXTURES,
    WAYS,
    Way,
    WayJob,
    _about,
    first_ears,
    later_texts,
    read_twice,
    train_on,
    with_sarcasm,
)
from tests.reproduction.test_builtin_more_texts import lessons_of, plan_of


@pytest.mark.parametrize(("which", "n"), [(LATER, 508), (LATEST, 1740)])
def test_the_later_texts_are_learned_from(which: re.Pattern[str], n: int) -> None:
    later = later_texts(which)
    assert len(later) == n
    splits = {one.split for one in load("contrast") if one.text in later}
    assert splits == {"train"}


def test_the_first_edition_says_how_sarcastic_older_texts_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = {"dull.": 0.2, "fine.": 0.4, "sunny!": 0.3, "made of both.": 0.5, "a tweet.": 0.6}
    answers = {"sarcasm": {key: (1 - share, share) for key, share in heard.items()}}
    monkeypatch.setattr(builtin_trained_on, "answer_all", lambda model, texts: answers)
    monkeypatch.setattr(builtin_trained_on, "load_model", lambda folder: None)
    monkeypatch.setattr(builtin_trained_on, "ours_and_older", lambda texts: ([], list(texts)))
    reviews = ("film reviews", "product reviews", "editorials")
    older = [Example(text, {}, source=source) for source in reviews for text in ("Dull.", "Fine.")]
    older.append(Example("Sunny!", {}, source="tweets"))
    made = (Example("Made of both.", {}), Example("A tweet.", {}))
    lessons = replace(lessons_of({}), unlabelled=made)
    lessons = replace(
        lessons, answers={"sentiment": {}, "sarcasm": {"made of both.": (0.95, 0.05)}}
    )
    found = first_ears(lessons, plan_of(*older))
    # 0.3 is the mean that is heard of reviews, 0.05 what is known of them
    assert found["fine."][1] == pytest.approx(_moved(0.4))
    assert found["dull."][1] < 0.05 < found["fine."][1]
    assert found["made of both."][1] == pytest.approx(_moved(0.5))
    assert found["sunny!"][1] == pytest.approx(0.3)  # nothing is known of tweets
    assert found["a tweet."][1] == pytest.approx(0.6)
    sarcasm = with_sarcasm(lessons_of({}), found).answers["sarcasm"]
    assert sarcasm == found


def _moved(share: float) -> float:
    odds = share / (1 - share) * (0.05 / 0.95) / (0.3 / 0.7)
    return odds / (1 + odds)


def test_weak_kinds_and_tweets_are_read_twice_and_others_once() -> None:
    texts = [one for one in load("contrast?kind=litotes") if one.split == "train"][:3]
    other = next(one for one in load("contrast?kind=question") if one.split == "train")
    tweet = Example("great, rain", {"sarcasm": "sarcastic"}, source="iSarcasm")
    plan = plan_of(*texts, other, tweet)
    n_again = {}
    for focus, tweets in product((False, True), repeat=2):
        way = Way(0, 1, 1e-4, focus=focus, tweets=tweets)
        n_again[focus, tweets] = len(read_twice(lessons_of({}), plan, way, set()).unlabelled)
    assert n_again == {
        (False, False): 0,
        (False, True): 1,
        (True, False): 3,
        (True, True): 4,
    }


def test_what_a_mixture_is_made_of_is_told() -> None:
    found = {"n_texts": {"reserved": 1000, "other tweets": 234}}
    told = _about(("boldly", "gently", "edition 2"), found)
    assert told.startswith("The second edition, trained on in 2 ways, the mean of their weights")
    assert "and, for 0.33, its own." in told
    assert "1,234 texts" in told
    assert all(set(parts) <= {*WAYS, "edition 1", "edition 2"} for parts in MIXTURES)


def test_a_model_is_trained_on_and_keeps_what_was_frozen(
    trained_folder: Path, tmp_path: Path
) -> None:
    before = load_model(trained_folder)
    task = next(iter(before.classifier.tasks.values()))
    texts = [f"text number {number}" for number in range(8)]
    examples = tuple(
        Example(text, {task.name: task.labels[number % 2]}) for number, text in enumerate(texts)
    )
    lessons = Lessons({}, (), share=0.5, temperature=1.0)
    way = Way(seed=0, epochs=1, learning_rate=1e-3, focus=False)
    train_on(
        WayJob(way, examples, lessons, tmp_path / "gently", (trained_folder,), 1), ignore_progress
    )
    after: Any = load_model(tmp_path / "gently" / "model")
    old, new = before.classifier.state_dict(), after.classifier.state_dict()
    changed = {name for name, tensor in new.items() if not tensor.equal(old[name])}
    assert changed
    assert not any("embedding" in name for name in changed)
