"""The temperature is where the likelihood is best, the threshold moves only when it should,
sets of labels hold what they promise.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import beta
from sklearn.metrics import f1_score

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.model.calibration import (
    HIGHEST,
    LOWEST,
    Bound,
    Calibration,
    LabelSets,
    apply_to_each,
    fit_bound,
    fit_calibration,
    fit_each,
    fit_temperature,
    fit_threshold,
    label_shares,
    needed_texts,
    supported_coverage,
    thresholds_of,
    to_answers,
)

Array = np.ndarray[Any, Any]


def loss(logits: Array, gold: Array, at: float) -> float:
    return float(-log_softmax(logits / at, axis=1)[np.arange(len(gold)), gold].mean())


def simulated(
    n: int, *, n_classes: int = 3, too_sure: float = 1.0, seed: int = 0
) -> tuple[Array, Array]:
    """Logits whose softmax is the truth, then multiplied: the best temperature is `too_sure`."""
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, n_classes))
    gold = (softmax(logits, axis=1).cumsum(1) < generator.random((n, 1))).sum(1)
    return too_sure * logits, np.minimum(gold, n_classes - 1)


def two_class(n: int, *, shift: float, rate: float, seed: int) -> tuple[Array, Array]:
    """P(class 1) of a model that leans by `shift`, and the gold classes."""
    generator = np.random.default_rng(seed)
    gold = (generator.random(n) < rate).astype(np.int64)
    return 1 / (1 + np.exp(-(2 * (gold - 0.5) + 1.3 * generator.normal(size=n) + shift))), gold


@pytest.mark.parametrize("too_sure", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_temperature_finds_the_planted_one(too_sure: float, n_classes: int) -> None:
    logits, gold = simulated(5000, n_classes=n_classes, too_sure=too_sure)
    assert fit_temperature(logits, gold) == pytest.approx(too_sure, rel=0.08)


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(2, 4))
def test_no_temperature_is_likelier(seed: int, n: int, n_classes: int) -> None:
    generator = np.random.default_rng(seed)
    logits, gold = 5 * generator.normal(size=(n, n_classes)), generator.integers(0, n_classes, n)
    found = fit_temperature(logits, gold)
    assert LOWEST <= found <= HIGHEST
    best = minimize_scalar(
        lambda inverse: loss(logits, gold, 1 / inverse),
        bounds=(1 / HIGHEST, 1 / LOWEST),
        method="bounded",
    )
    assert loss(logits, gold, found) <= best.fun + 1e-9


def test_temperature_at_its_bounds() -> None:
    right, wrong = np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 3.0], [2.0, 0.0]])
    gold = np.array([0, 1])
    assert fit_temperature(right, gold) == LOWEST
    assert fit_temperature(wrong, gold) == HIGHEST
    assert fit_temperature(right[:1], gold[:1]) == LOWEST
    assert fit_temperature(1e6 * wrong, gold) == HIGHEST  # nothing overflows
    assert fit_temperature(np.zeros((4, 2)), np.array([0, 1, 0, 1])) == 1.0
    assert fit_temperature(np.empty((0, 2)), np.empty(0, dtype=np.int64)) == 1.0


def test_a_leaning_model_gets_a_threshold_that_helps_elsewhere() -> None:
    held_out, gold = two_class(400, shift=-1.5, rate=0.4, seed=0)
    chosen = fit_threshold(held_out, gold)
    assert 0.1 < chosen < 0.4
    fresh, fresh_gold = two_class(20_000, shift=-1.5, rate=0.4, seed=1)
    gain = f1_score(fresh_gold, fresh >= chosen, average="macro") - f1_score(
        fresh_gold, fresh >= 0.5, average="macro"
    )
    assert gain > 0.05


@pytest.mark.slow
def test_one_half_mostly_stays_when_it_is_right() -> None:
    """The best threshold of a small slice nearly always differs from one half; the rule keeps one
    half in most of them.
    """
    chosen = [fit_threshold(*two_class(120, shift=0.0, rate=0.5, seed=seed)) for seed in range(40)]
    assert sum(one == 0.5 for one in chosen) >= 20
    fresh, gold = two_class(20_000, shift=0.0, rate=0.5, seed=99)
    losses = [
        f1_score(gold, fresh >= 0.5, average="macro")
        - f1_score(gold, fresh >= one, average="macro")
        for one in chosen
    ]
    assert np.mean(losses) < 0.005


def test_one_text_of_a_class_moves_nothing() -> None:
    # absent from a third of the resamples
    assert fit_threshold(np.array([0.1, 0.2, 0.3, 0.45]), [0, 0, 0, 1]) == 0.5
    assert fit_threshold(np.array([0.1, 0.2]), [0, 0]) == 0.5
    assert fit_threshold(np.full(10, 0.3), [0, 1] * 5) == 0.5
    assert fit_threshold(np.empty(0), []) == 0.5


def test_the_worst_group_decides() -> None:
    fair, fair_gold = two_class(1500, shift=0.0, rate=0.5, seed=2)
    leaning, leaning_gold = two_class(300, shift=-2.0, rate=0.5, seed=3)
    both, gold = np.concatenate([fair, leaning]), np.concatenate([fair_gold, leaning_gold])
    groups = ["en-UK"] * len(fair) + ["en-IN"] * len(leaning)
    chosen = fit_threshold(both, gold, groups)
    assert chosen < fit_threshold(both, gold) - 0.05
    assert fit_threshold(both, gold, groups) == chosen
    # one class alone: has no say, since it would like any low threshold
    single = ([0.9] * 50, [1] * 50, [None] * 50)
    more = [np.concatenate([a, b]) for a, b in zip((both, gold), single[:2], strict=True)]
    assert fit_threshold(more[0], more[1].astype(np.int64), [*groups, *single[2]]) == pytest.approx(
        chosen, abs=0.05
    )


def test_apply_is_softmax_then_decision() -> None:
    logits = np.array([[1.0, 0.0], [0.0, 0.4], [2.0, -1.0]], dtype=np.float32)
    labels, probabilities = Calibration(2.0, 0.35, 9).apply(logits)
    assert probabilities == pytest.approx(softmax(logits.astype(float) / 2, axis=1))
    assert labels.tolist() == [1, 1, 0]  # P(class 1) is 0.38, 0.55, 0.18
    labels, probabilities = Calibration().apply(logits)
    assert labels.tolist() == [0, 1, 0]
    assert probabilities == pytest.approx(softmax(logits.astype(float), axis=1))
    for empty in (np.empty((0, 2)), np.empty((0, 1))):
        assert [part.shape[0] for part in Calibration(1.0, 0.4, 9).apply(empty)] == [0, 0]


def test_fit_learns_both() -> None:
    probabilities, gold = two_class(600, shift=-1.5, rate=0.4, seed=5)
    logits = 3 * np.stack([np.zeros(600), np.log(probabilities / (1 - probabilities))], axis=1)
    learned = fit_calibration(logits, gold)
    assert learned.temperature == fit_temperature(logits, gold) > 2
    assert learned.n == 600
    assert learned.threshold is not None
    labels, found = learned.apply(logits)
    assert (
        f1_score(gold, labels, average="macro")
        > f1_score(gold, logits.argmax(1), average="macro") + 0.03
    )
    assert ((found[:, 1] >= learned.threshold) == labels).all()
    assert fit_calibration(logits, gold, with_threshold=False).threshold is None
    assert fit_calibration(*simulated(200)).threshold is None  # three classes have none
    assert fit_calibration(np.empty((0, 2)), []) == Calibration()
    # texts without a mistake teach no temperature
    assert fit_calibration(np.array([[3.0, 0.0], [0.0, 2.0]]), [0, 1]).temperature == 1.0
    with pytest.raises(UserError, match="lower learning rate"):
        fit_calibration(np.array([[np.nan, 0.0]]), [0])
    several = Calibration(1.7, None, 240, (0.4, 0.6))
    for value in (Calibration(), learned, several):
        assert Calibration.from_json(json.loads(json.dumps(value.as_json()))) == value


def test_labels_that_are_decided_alone_are_calibrated_as_two_classes_each() -> None:
    probabilities, gold = two_class(600, shift=-1.5, rate=0.4, seed=5)
    logits = 3 * np.log(probabilities / (1 - probabilities)).reshape(200, 3)
    given = gold.reshape(200, 3)
    learned = fit_each(logits, given)
    flat = np.stack([np.zeros(600), logits.reshape(-1)], axis=1)
    assert learned.temperature == pytest.approx(fit_temperature(flat, gold))
    assert (learned.n, learned.threshold) == (200, None)
    flags, shares = apply_to_each(learned, logits)
    np.testing.assert_allclose(shares, 1 / (1 + np.exp(-logits / learned.temperature)))
    thresholds = [fit_threshold(own, right) for own, right in zip(shares.T, given.T, strict=True)]
    assert learned.thresholds == tuple(thresholds)
    np.testing.assert_array_equal(flags, shares >= np.array(thresholds))
    plain = fit_each(logits, given, with_threshold=False)
    assert thresholds_of(plain, 3).tolist() == [0.5] * 3
    assert fit_each(logits[:0], given[:0]) == Calibration()
    right = np.where(given, 5.0, -5.0)
    assert fit_each(right, given).temperature == 1.0


# Sets of labels hold the truth as often as promised, and are those that the definition gives


def bad_model(n: int, n_classes: int, generator: np.random.Generator) -> tuple[Array, Array]:
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
    probabilities, gold = bad_model(int(generator.integers(20, 60)), n_classes, generator)
    new, _ = bad_model(8, n_classes, generator)
    bound = fit_bound(probabilities, gold, float(coverage))
    assert (label_shares(probabilities, None) == probabilities).all()
    own_bound = LabelSets(0.9, bound, {"en-AU": Bound(0.7, 10)})
    assert own_bound.bound("en-AU").least == 0.7
    assert own_bound.bound(None) == own_bound.bound("en-NG") == bound
    assert LabelSets.from_json(own_bound.as_json()) == own_bound
    labels = "abcd"[:n_classes]
    own = probabilities[np.arange(len(gold)), gold]
    sets = LabelSets(float(coverage), bound)
    task, least = Task("t", tuple(labels)), sets.bound(None).least
    answers = to_answers(np.log(new), task, Calibration(), least=least)
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
        probabilities, gold = bad_model(50 + 200, 3, generator)
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
    task = Task("mood", ("calm", "angry"))
    answers = to_answers(logits, task, Calibration(threshold=threshold), least=least)
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
