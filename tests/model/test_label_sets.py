"""Sets of labels hold the truth as often as promised, are those that the definition gives, and are
read from no damaged file.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.model.calibration import (
    Bound,
    Calibration,
    LabelSets,
    check_label_sets,
    fit_bound,
    label_shares,
    needed_texts,
    supported_coverage,
    to_answers,
)

Array = np.ndarray[Any, Any]


def simulated(n: int, n_classes: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Probabilities of a bad model, and gold classes that have only something to do with them."""
    logits = generator.normal(size=(n, n_classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    gold = (logits + 1.5 * generator.normal(size=logits.shape)).argmax(1)
    return probabilities, gold


def p_value(own: float, calibration: Array) -> Fraction:
    """Of one label by the definition: how many of the texts, this one among them, fit no better."""
    n_worse = sum(1 for share in calibration if share <= own)
    return Fraction(1 + n_worse, 1 + len(calibration))


@given(
    st.integers(0, 10_000), st.integers(2, 4), st.sampled_from(["0.5", "0.8", "0.9", "0.95", "0.7"])
)
def test_sets_are_those_of_the_p_values(seed: int, n_classes: int, coverage: str) -> None:
    """A label belongs to the set if its p-value exceeds 1 − coverage (Vovk et al. 2005, §2.2)."""
    generator = np.random.default_rng(seed)
    probabilities, gold = simulated(int(generator.integers(20, 60)), n_classes, generator)
    new, _ = simulated(8, n_classes, generator)
    bound = fit_bound(probabilities, gold, float(coverage))
    labels = "abcd"[:n_classes]
    own = probabilities[np.arange(len(gold)), gold]
    sets = LabelSets(float(coverage), bound)
    answers = to_answers(np.log(new), Task("t", tuple(labels)), Calibration(), label_sets=sets)
    for shares, found in zip(new, answers.sets(), strict=True):
        assert found is not None
        expected = [
            label
            for label, share in zip(labels, shares, strict=True)
            if p_value(share, own) > 1 - Fraction(coverage)
        ]
        assert list(found) == expected


def test_sets_hold_the_truth_as_often_as_promised() -> None:
    """Over many calibrations the mean is that of a Beta(k, n + 1 − k), whatever the model."""
    generator, hits = np.random.default_rng(0), []
    for _ in range(400):
        probabilities, gold = simulated(50 + 200, 3, generator)
        bound = fit_bound(probabilities[:50], gold[:50], 0.8)
        hits.append((probabilities[50:][np.arange(200), gold[50:]] >= bound.least).mean())
    k = 41  # ⌈51 · 0.8⌉
    expected = beta(k, 51 - k)
    assert np.mean(hits) == pytest.approx(expected.mean(), abs=0.012)
    assert np.std(hits) == pytest.approx(np.hypot(expected.std(), (0.16 / 200) ** 0.5), rel=0.15)


@pytest.mark.parametrize(
    ("coverage", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.7, 3)]
)
def test_too_few_texts_are_refused_with_what_they_can_support(coverage: float, needed: int) -> None:
    assert needed_texts(coverage) == needed
    assert supported_coverage(needed) >= coverage > supported_coverage(needed - 1)
    shares, gold = np.full((needed, 2), 0.5), np.zeros(needed, dtype=np.int64)
    assert fit_bound(shares, gold, coverage).n == needed
    with pytest.raises(UserError, match=r"support.* a coverage of at most .*, and .* needs"):
        fit_bound(shares[1:], gold[1:], coverage)


@given(st.integers(0, 10_000), st.floats(0.02, 0.98), st.floats(0, 1))
def test_a_single_label_is_the_answer(seed: int, threshold: float, least: float) -> None:
    """Also where a threshold answers with the less probable label."""
    logits = np.random.default_rng(seed).normal(size=(20, 2))
    task, sets = Task("mood", ("calm", "angry")), LabelSets(0.9, Bound(least, 10))
    answers = to_answers(logits, task, Calibration(threshold=threshold), label_sets=sets)
    for answer in answers.objects():
        assert answer.labels is not None
        if len(answer.labels) == 1:
            assert answer.labels == (answer.label,)
            assert answer.unsure is None
        else:
            assert answer.unsure == (
                "several labels are possible: calm, angry"
                if answer.labels
                else "no label is likely enough"
            )


def test_shares_without_a_threshold_are_probabilities() -> None:
    probabilities = np.array([[0.2, 0.5, 0.3]])
    assert (label_shares(probabilities, None) == probabilities).all()


def test_a_variety_has_its_own_bound() -> None:
    sets = LabelSets(0.9, Bound(0.4, 30), {"en-AU": Bound(0.7, 10)})
    assert sets.bound("en-AU").least == 0.7
    assert sets.bound(None) == sets.bound("en-NG") == sets.overall
    assert LabelSets.from_json(sets.as_json()) == sets


GOOD = {"coverage": 0.9, "overall": {"least": 0.4, "n": 30}, "varieties": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"coverage": 1},
        {"coverage": "0.9"},
        {"coverage": True},
        {"overall": {"least": 1.5, "n": 30}},
        {"overall": {"least": float("nan"), "n": 30}},
        {"overall": {"least": 0.4, "n": 0}},
        {"overall": {"least": 0.4, "n": True}},
        {"overall": {"least": 0.4}},
        {"overall": None},
        {"varieties": []},
        {"varieties": {"en\x1b": {"least": 0.4, "n": 30}}},
        {"varieties": {"en-AU": 0.4}},
        {"more": 1},
    ],
    ids=repr,
)
def test_damaged_bounds_are_refused(change: dict[str, Any]) -> None:
    check_label_sets({"mood": GOOD}, {"mood": ["calm", "angry"]})
    with pytest.raises(ValueError, match=r"must be|has a|have|not a table"):
        check_label_sets({"mood": GOOD | change}, {"mood": ["calm", "angry"]})


def test_bounds_of_no_task_with_labels_are_refused() -> None:
    for tasks in ({}, {"mood": []}):
        with pytest.raises(ValueError, match="no task with labels"):
            check_label_sets({"mood": GOOD}, tasks)
