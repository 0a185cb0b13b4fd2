"""Calibration errors by hand and by simulation, and the diagram that shows them."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import brier_score_loss

from litotes.core.figures import render_figure
from litotes.evaluation.reliability import (
    Reliability,
    draw_reliability,
    draw_risk_coverage,
    reliability,
    risk_coverage,
)
from litotes.model.calibration import Calibration, fit_calibration

Array = np.ndarray[Any, Any]


def simulated(n: int, *, too_sure: float, seed: int) -> tuple[Array, Array]:
    """Logits of three classes, `too_sure` times as large as they should be, and gold classes."""
    generator = np.random.default_rng(seed)
    logits = 1.5 * generator.normal(size=(n, 3))
    gold = (softmax(logits, axis=1).cumsum(1) < generator.random((n, 1))).sum(1)
    return too_sure * logits, np.minimum(gold, 2)


def check_reliability(calibration: Calibration, logits: Array, gold: Array) -> Reliability:
    labels, probabilities = calibration.apply(logits)
    return reliability(probabilities[np.arange(len(gold)), labels], labels == gold)


def test_by_hand() -> None:
    result = reliability([0.55, 0.65, 0.95, 0.95, 1.0], [True, False, True, True, False])
    assert [(one.low, one.high, one.n) for one in result.bins] == [
        (0.5, 0.6, 1),
        (0.6, 0.7, 1),
        (0.9, 1.0, 3),
    ]
    assert [one.right for one in result.bins] == pytest.approx([1, 0, 2 / 3])
    assert [one.confidence for one in result.bins] == pytest.approx([0.55, 0.65, 2.9 / 3])
    assert result.ece == pytest.approx((0.45 + 0.65 + 0.9) / 5)
    # 1.0 has a bin of its own, the two 0.95 share one
    assert result.ece_equal_mass == pytest.approx((0.45 + 0.65 + 0.1 + 1.0) / 5)
    assert result.accuracy == pytest.approx(0.6)
    assert result.confidence == pytest.approx(4.1 / 5)
    assert result.brier == pytest.approx(
        brier_score_loss([1, 0, 1, 1, 0], [0.55, 0.65, 0.95, 0.95, 1.0])
    )
    assert json.loads(json.dumps(result.as_json()))["bins"][2]["n"] == 3


def test_equal_mass_bins_hold_equally_many() -> None:
    """Texts in tens, each ten right or wrong as a whole: only bins that keep the tens together give
    this error.
    """
    sure = np.linspace(0.5, 0.99, 100)
    right = np.arange(100) // 10 % 2 == 0
    by_hand = np.abs((right - sure).reshape(10, 10).sum(1)).sum() / 100
    shuffled = np.random.default_rng(0).permutation(100)
    assert reliability(sure[shuffled], right[shuffled]).ece_equal_mass == pytest.approx(by_hand)


def test_the_temperature_mends_an_over_confident_model() -> None:
    calibration = fit_calibration(*simulated(500, too_sure=3.0, seed=2))
    fresh = simulated(3000, too_sure=3.0, seed=3)
    before, after = check_reliability(Calibration(), *fresh), check_reliability(calibration, *fresh)
    assert before.ece > 0.12
    assert after.ece < 0.04
    assert after.ece_equal_mass < before.ece_equal_mass / 3
    assert after.brier < before.brier
    assert after.accuracy == before.accuracy  # a temperature changes no label


def test_the_area_is_the_mean_over_all_orders_of_ties() -> None:
    generator = np.random.default_rng(0)
    confidence = generator.choice([0.5, 0.6, 0.9], size=7)
    right = generator.random(7) < 0.6
    areas = []
    for _ in range(3000):
        order = np.lexsort((generator.random(7), -confidence))
        areas.append((np.cumsum(~right[order]) / np.arange(1, 8)).mean())
    found = risk_coverage(confidence, right)
    assert found.area == pytest.approx(np.mean(areas), abs=0.01)
    assert found.risk[-1] == pytest.approx(found.error) == 1 - right.mean()
    n_right = int(right.sum())
    best = [max(k - n_right, 0) / k for k in range(1, 8)]
    assert found.best_area == pytest.approx(np.mean(best))
    assert found.coverage == pytest.approx(np.arange(1, 8) / 7)
    # a confidence that says nothing
    assert risk_coverage(np.full(10, 0.7), np.arange(10) < 6).area == pytest.approx(0.4)


@pytest.mark.slow
def test_figures_show_errors_areas_and_counts() -> None:
    logits, gold = simulated(300, too_sure=3.0, seed=4)
    results = {
        "before": check_reliability(Calibration(), logits, gold),
        "after $_{$": check_reliability(fit_calibration(logits, gold), logits, gold),
    }
    svg = render_figure(draw_reliability(results), "svg")
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    written = [element.text for element in texts]
    for name, result in results.items():
        assert f"{name}: ECE {result.ece:.3f} (equal mass {result.ece_equal_mass:.3f})" in written
        assert {str(one.n) for one in result.bins} <= set(written)
    assert written.count("perfect calibration") == 1
    assert svg == render_figure(draw_reliability(results), "svg")
    curve = risk_coverage(np.linspace(0.5, 1, 50), np.arange(50) % 3 > 0)
    svg = render_figure(draw_risk_coverage({"$_{$": curve}), "svg").decode()
    assert f"$_{{$: {curve.area:.3f} (best {curve.best_area:.3f}" in svg
