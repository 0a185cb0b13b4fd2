"""The loss to be expected: it covers the truth, and it is honest about the best of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from litotes.core.numbers import Floats
from litotes.pruning.losses import Evidence, draw_losses

RATIOS = (1.0, 1.5, 2.0, 2.5, 3.0)
STEPS = np.log2(RATIOS)
BUDGET = 0.5


@dataclass(frozen=True)
class World:
    """True losses of some settings, what texts showed of them, and of models made in the same
    way.
    """

    truth: Floats
    direct: Evidence
    folds: tuple[Evidence, ...]


def make_worlds(n: int, *, error: float, n_folds: int = 0) -> Iterator[World]:
    """error: standard deviation of a loss that texts show; half of its square is common to all
    settings, which are compared with the same dense answers.
    """
    generator = np.random.default_rng(0)
    covariance = error**2 * (0.5 + 0.5 * np.eye(len(RATIOS)))
    # one error for all settings and one for each: a library's way to draw from the covariance
    # would be another on another processor
    spread = error * 0.5**0.5
    for _ in range(n):
        frontier = generator.normal(0, 0.5) + abs(generator.normal(0, 1.2)) * STEPS
        models = []
        for _ in range(n_folds + 1):
            luck = generator.normal(0, 0.5) + generator.normal(0, 0.4, len(RATIOS))
            truth = frontier + luck
            error_of_all = generator.normal(0, spread)
            seen = truth + error_of_all + generator.normal(0, spread, len(RATIOS))
            models.append((truth, Evidence(seen, covariance, 300)))
        (truth, direct), *folds = models
        yield World(truth, direct, tuple(evidence for _, evidence in folds))


def choose_fastest(losses: Floats) -> int | None:
    """The place of the fastest setting within the budget; not the control."""
    within = [place for place in range(1, len(RATIOS)) if losses[place] <= BUDGET]
    return max(within, default=None)


@pytest.mark.slow
@pytest.mark.parametrize(("error", "n_folds"), [(1.5, 0), (1.5, 4)])
def test_intervals_cover_and_the_best_of_many_is_not_too_good(error: float, n_folds: int) -> None:
    covered, honest, raw, certainty, kept = [], [], [], [], []
    for number, world in enumerate(make_worlds(40, error=error, n_folds=n_folds)):
        draws = draw_losses(RATIOS, world.direct, world.folds, seed=number)  # (draw, setting)
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        covered.append((low <= world.truth) & (world.truth <= high))
        expected = draws.mean(0)
        if (place := choose_fastest(expected)) is not None:
            honest.append(world.truth[place] - expected[place])
            certainty.append(np.mean(draws[:, place] <= BUDGET))
            kept.append(world.truth[place] <= BUDGET)
        if (place := choose_fastest(world.direct.losses)) is not None:
            raw.append(world.truth[place] - world.direct.losses[place])
    assert 0.92 <= np.mean(covered) <= 1.0
    assert np.mean(raw) > 0.8  # what texts showed of the best was luck
    assert np.mean(honest) < 0.5 * np.mean(raw)
    assert len(honest) >= 10
    # as often within the budget as it said
    assert np.mean(kept) == pytest.approx(np.mean(certainty), abs=0.2)


def test_what_is_seen_counts_by_how_well_it_is_seen() -> None:
    seen = np.array([0.0, 4.0, 4.0, 4.0, 4.0])
    few, many = (
        draw_losses(RATIOS, Evidence(seen, np.eye(5) * error**2, 100), seed=0).mean(0)
        for error in (3.0, 0.05)
    )
    assert many == pytest.approx(seen, abs=0.3)
    assert few[1] < 3.0 < few[4]  # drawn to a frontier that rises


def test_folds_tell_about_the_model_and_not_as_much_as_its_own_texts() -> None:
    sharp = np.eye(5) * 0.1**2
    own = Evidence(np.full(5, 2.0), sharp, 4000)
    other = Evidence(np.full(5, 2.0), sharp, 4000)
    by_folds = draw_losses(RATIOS, None, [other] * 4, seed=0)
    by_own = draw_losses(RATIOS, own, seed=0)
    assert by_folds.mean(0) == pytest.approx(np.full(5, 2.0), abs=0.5)
    # four models, however many texts, leave another one's luck open
    assert (by_folds.std(0) > 1.5 * by_own.std(0)).all()


def test_large_losses_are_not_explained_away() -> None:
    seen = np.array([1.0, 20.0, 30.0, 40.0, 50.0])
    draws = draw_losses(RATIOS, Evidence(seen, np.eye(5) * 2.0**2, 200), seed=0)
    assert draws.mean(0)[1:] == pytest.approx(seen[1:], rel=0.2)


def test_nothing_seen_is_the_prior_alone() -> None:
    draws = draw_losses(RATIOS, None, seed=0)
    means = draws.mean(0)
    assert (np.diff(means) > 0).all()
    assert (draws.std(0) > 0.7).all()
