"""The threshold of exits keeps its promise as often as it says, and is as mild as that allows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from litotes.pruning.exit_teaching import fit_sureness
from litotes.pruning.exits import Rehearsal, candidate_cuts, choose_cut, n_needed, share_interval

ALLOWED, CONFIDENCE = 0.05, 0.9
N_TEXTS, N_TRIALS = 400, 200


def world(generator: np.random.Generator, n: int) -> Rehearsal:
    """Two exits that are less often right than they say: only a test of the threshold helps."""
    log_odds = generator.normal(1.5, 2.0, size=(2, n))
    agrees = generator.random((2, n)) < expit(0.6 * log_odds)
    return Rehearsal(log_odds, agrees)


CUTS = candidate_cuts(world(np.random.default_rng(1), 2000).log_odds)[::8]
MANY = world(np.random.default_rng(2), 50_000)
RISKS = {cut: float(MANY.differs(cut).mean()) for cut in CUTS}
"""Nearly the truth: of very many texts."""


@cache
def chosen_risks(allowed: float, confidence: float) -> np.ndarray:
    """The true share of texts that differ, for thresholds chosen from different texts."""
    risks = []
    for seed in range(N_TRIALS):
        tested = world(np.random.default_rng(100 + seed), N_TEXTS)
        cut = choose_cut(tested, CUTS, allowed=allowed, confidence=confidence)
        risks.append(0.0 if cut is None else RISKS[cut])
    return np.array(risks)


def test_the_promise_is_kept_as_often_as_stated() -> None:
    broken = int((chosen_risks(ALLOWED, CONFIDENCE) > ALLOWED).sum())
    # more would come by chance once in ten thousand times
    assert broken <= binom.ppf(0.9999, N_TRIALS, 1 - CONFIDENCE)


def test_the_promise_is_not_kept_by_promising_too_little() -> None:
    """With half the confidence it is broken more often than one in ten, and thresholds let as many
    texts differ as they may, roughly.
    """
    risks = chosen_risks(ALLOWED, 0.5)
    assert (risks > ALLOWED).mean() > 1 - CONFIDENCE
    assert 0.6 * ALLOWED < np.median(chosen_risks(ALLOWED, CONFIDENCE)) < ALLOWED


def test_testing_ends_at_the_first_failure() -> None:
    """A milder threshold that looks good by chance is not reached behind one that failed."""
    log_odds = np.concatenate([np.full(100, 3.0), np.full(100, 2.0), np.full(1000, 1.0)])[None]
    agrees = np.ones(1200, dtype=bool)
    agrees[100:200] = False
    rehearsal = Rehearsal(log_odds, agrees[None])
    options = {"allowed": 0.09, "confidence": 0.5}
    assert choose_cut(rehearsal, [3.0], **options) == 3.0
    assert choose_cut(rehearsal, [1.0], **options) == 1.0
    assert choose_cut(rehearsal, [3.0, 2.0, 1.0], **(options | {"allowed": 0.05})) == 3.0
    assert choose_cut(rehearsal, [2.0, 3.0], **(options | {"allowed": 0.05})) is None


@pytest.mark.parametrize(("allowed", "confidence"), [(0.01, 0.95), (0.1, 0.9), (0.02, 0.5)])
def test_the_fewest_texts_for_a_promise(allowed: float, confidence: float) -> None:
    n = n_needed(allowed=allowed, confidence=confidence)
    for size, is_enough in ((n, True), (n - 1, False)):
        faultless = Rehearsal(np.zeros((1, size)), np.ones((1, size), dtype=bool))
        cut = choose_cut(faultless, [0.0], allowed=allowed, confidence=confidence)
        assert (cut is not None) == is_enough


def test_a_text_leaves_by_the_first_exit_that_is_sure() -> None:
    log_odds = np.array([[2.0, 0.0, 0.0, 2.0], [2.0, 2.0, 0.0, 0.0]])
    agrees = np.array([[True, False, False, False], [False, False, False, True]])
    rehearsal = Rehearsal(log_odds, agrees)
    assert rehearsal.places(1.0).tolist() == [0, 1, 2, 0]
    assert rehearsal.differs(1.0).tolist() == [False, True, False, True]


def test_cuts_go_from_strict_to_mild() -> None:
    cuts = CUTS
    assert cuts == sorted(cuts, reverse=True)
    left = [(MANY.places(cut) < 2).mean() for cut in cuts]
    assert left[0] < 0.02
    assert left[-1] > 0.9


def test_sureness_equals_a_logistic_regression() -> None:
    generator = np.random.default_rng(0)
    margins = generator.exponential(2.0, 20_000)
    agrees = generator.random(20_000) < expit(-0.5 + 1.2 * margins)
    found = fit_sureness(margins, agrees)
    expected = LogisticRegression(C=np.inf).fit(margins[:, None], agrees)
    assert found.offset == pytest.approx(expected.intercept_[0], abs=0.02)
    assert found.slope == pytest.approx(expected.coef_[0, 0], abs=0.02)


@pytest.mark.parametrize("n", [1, 30])
def test_texts_that_all_agree_make_no_exit_certain(n: int) -> None:
    found = fit_sureness(np.linspace(1, 2, n), np.ones(n, dtype=bool))
    assert expit(found.log_odds(np.array([2.0])))[0] == pytest.approx((n + 1) / (n + 2), abs=1e-3)


def test_a_margin_that_misleads_is_not_used() -> None:
    margins = np.linspace(0, 4, 400)
    found = fit_sureness(margins, margins < 2)
    assert found.slope == 0
    assert expit(found.offset) == pytest.approx(0.5, abs=0.02)


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    low, high = share_interval(4, 100)
    assert binom.sf(3, 100, low) == pytest.approx(0.025)
    assert binom.cdf(4, 100, high) == pytest.approx(0.025)
    assert share_interval(0, 10)[0] == 0
    assert share_interval(10, 10)[1] == 1
