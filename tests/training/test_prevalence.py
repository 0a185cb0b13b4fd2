"""Answers are moved to how frequent a label is known to be where a text comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import example_key
from litotes.training.distillation import DistillRecipe, plan_distillation
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.prevalence import with_known_prevalence

RARE = {"en-UK": {"sentiment": {"negative": 0.1}}}


def _plan(recipe: DistillRecipe, tea: str, out: Path, prevalence: Any) -> DistillPlan:
    """Each variety counts as a source."""
    student = recipe.student.changed(data__source=f"{tea}&source=variety")
    told = DistillRecipe(student, recipe.distill).changed(prevalence=prevalence)
    return plan_distillation(told, out / "student")


def _unlabelled(plan: DistillPlan, source: str) -> list[Example]:
    return [one for one in plan.others if one.source == source]


def test_odds_are_moved_and_what_nobody_answered_is_the_prevalence(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    plan = _plan(recipe, tea, tmp_path, RARE)
    answered, silent = (example_key(one) for one in _unlabelled(plan, "en-UK")[:2])
    elsewhere = "a text of another source"
    labelled = next(example_key(one) for one in plan.data.train if one.source == "en-UK")
    given = {"sentiment": dict.fromkeys((answered, elsewhere, labelled), (0.6, 0.4))}
    moved = with_known_prevalence(given, plan)["sentiment"]
    labels = [one.labels["sentiment"] for one in plan.data.train]
    learned = labels.count("negative") / len(labels)
    odds = 0.6 / 0.4 * (0.1 / 0.9) / (learned / (1 - learned))
    assert moved[answered] == pytest.approx((odds / (1 + odds), 1 / (1 + odds)))
    assert moved[silent] == pytest.approx((0.1, 0.9))
    assert moved[elsewhere] == moved[labelled] == (0.6, 0.4)
    assert given["sentiment"][answered] == (0.6, 0.4)


def test_a_text_that_comes_twice_is_moved_once(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    """A corpus may have a row for each task; then a label for it in one row is a label."""
    plan = _plan(recipe, tea, tmp_path, RARE)
    twice = _unlabelled(plan, "en-UK")[0]
    labelled = next(one for one in plan.data.train if one.source == "en-UK")
    again = replace(labelled, labels={})
    given = {"sentiment": {example_key(one): (0.6, 0.4) for one in (twice, labelled)}}
    once = with_known_prevalence(given, plan)["sentiment"]
    more = replace(plan, others=(*plan.others, twice, again))
    assert with_known_prevalence(given, more)["sentiment"] == once


def test_a_label_that_no_teacher_has_seen_stays_impossible(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    plan = _plan(recipe, tea, tmp_path, {"en-UK": {"sentiment": {"negative": 0.1}}})
    wider = replace(plan.data.train.tasks["sentiment"], labels=("negative", "neutral", "positive"))
    train = replace(plan.data.train, tasks={"sentiment": wider})
    plan = replace(plan, data=replace(plan.data, train=train))
    key = example_key(_unlabelled(plan, "en-UK")[0])
    moved = with_known_prevalence({"sentiment": {key: (0.6, 0.0, 0.4)}}, plan)["sentiment"][key]
    assert moved[1] == 0.0
    assert sum(moved) == pytest.approx(1)


@pytest.mark.parametrize(
    ("prevalence", "words"),
    [
        ({"en-XX": {"sentiment": {"negative": 0.1}}}, "no texts to learn from. There are: en-AU"),
        ({"en-AU": {"tone": {"dry": 0.1}}}, "not a task with labels here. There are: sentiment"),
        ({"en-AU": {"sentiment": {"sour": 0.1}}}, "no label of sentiment"),
        ({"en-AU": {"sentiment": {"negative": 0.0}}}, "between 0 and 1"),
        ({"en-AU": {"sentiment": {"negative": 0.7, "positive": 0.4}}}, "between 0 and 1"),
        ({"en-AU": {"sentiment": {"negative": 0.7, "positive": 0.2}}}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    recipe: DistillRecipe, tea: str, tmp_path: Path, prevalence: Any, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        with_known_prevalence({}, _plan(recipe, tea, tmp_path, prevalence))


def test_all_shares_may_be_named(recipe: DistillRecipe, tea: str, tmp_path: Path) -> None:
    named = {"en-UK": {"sentiment": {"negative": 0.3, "positive": 0.7}}}
    plan = _plan(recipe, tea, tmp_path, named)
    moved = with_known_prevalence({}, plan)["sentiment"]
    assert set(moved.values()) == {(0.3, 0.7)}
