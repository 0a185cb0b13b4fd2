"""What texts show about a loss, and what is to be expected after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from litotes.core.numbers import Counts, Floats, confusion, macro_f1
from litotes.pruning.losses import Answers, Evidence, draw_losses, estimate_losses

N_CLASSES = 2


def draw_answers(generator: np.random.Generator, n: int, *, lost: float, won: float) -> Answers:
    """A dense model that is right 8 times in 10, and a pruned one that answers a share `lost` of
    these wrongly and a share `won` of the others rightly; both know how sure they may be.
    """
    sure = generator.uniform(0.5, 1.0, n)  # (text,)
    dense = (generator.random(n) < 0.3).astype(np.int64)
    gold = np.where(generator.random(n) < sure, dense, 1 - dense)
    is_right = gold == dense
    # where the dense model is unsure, the pruned one is more likely to differ
    likely = np.where(is_right, lost, won) * 4 * (1 - sure)
    pruned = np.where(generator.random(n) < likely, 1 - dense, dense)
    labels = np.array([dense, pruned])
    return Answers(gold, labels, beliefs(labels, sure))


def beliefs(labels: Counts, sure: Floats) -> Floats:
    """Probabilities of both classes, (model, text, class)."""
    first = np.where(labels == 0, sure, 1 - sure)
    return np.stack([first, 1 - first], axis=-1)


def true_loss(**shares: float) -> float:
    """On very many texts, in points."""
    answers = draw_answers(np.random.default_rng(7), 200_000, **shares)
    dense, pruned = (
        macro_f1(confusion(answers.gold, given, N_CLASSES)) for given in answers.labels
    )
    return 100 * float(dense - pruned)


def test_the_influence_of_texts_is_the_derivative_of_the_loss() -> None:
    """The covariance equals that of a jackknife: each text left out once."""
    answers = draw_answers(np.random.default_rng(0), 400, lost=0.1, won=0.1)
    assert answers.gold is not None
    left_out = []
    for place in range(answers.n_texts):
        kept = np.arange(answers.n_texts) != place
        tables = [confusion(answers.gold[kept], one[kept], N_CLASSES) for one in answers.labels]
        dense, pruned = 100 * macro_f1(np.array(tables))
        left_out.append(dense - pruned)
    jackknife = (answers.n_texts - 1) ** 2 / answers.n_texts * np.var(left_out, ddof=1)
    found = estimate_losses(answers)
    # a little more than the texts show: one more lost and won
    assert jackknife < found.covariance[0, 0] < 1.15 * jackknife


def test_equal_answers_to_few_texts_prove_little() -> None:
    gold = np.arange(30) % 2
    labels = np.array([gold, gold])
    same = Answers(gold, labels, beliefs(labels, np.full(30, 0.9)))
    found = estimate_losses(same)
    assert found.losses[0] == pytest.approx(0)
    assert found.covariance[0, 0] ** 0.5 > 2  # of 30 texts one is three points


@pytest.mark.slow
@pytest.mark.parametrize("n_more", [0, 2000])
def test_its_interval_covers_the_truth_as_often_as_it_says(n_more: int) -> None:
    """Over 200 samples of texts, alone and with texts without labels."""
    truth = true_loss(lost=0.08, won=0.05)
    generator = np.random.default_rng(1)
    covered = []
    for _ in range(200):
        answers = draw_answers(generator, 400, lost=0.08, won=0.05)
        more = draw_answers(generator, n_more, lost=0.08, won=0.05) if n_more else None
        found = estimate_losses(answers, more)
        width = 1.96 * found.covariance[0, 0] ** 0.5
        covered.append(abs(found.losses[0] - truth) <= width)
    assert 0.9 <= np.mean(covered) <= 0.99


def test_texts_without_labels_sharpen_an_estimate() -> None:
    generator = np.random.default_rng(2)
    answers = draw_answers(generator, 400, lost=0.08, won=0.05)
    more = draw_answers(generator, 20_000, lost=0.08, won=0.05)
    alone, sharper = estimate_losses(answers), estimate_losses(answers, more)
    assert sharper.covariance[0, 0] < 0.99 * alone.covariance[0, 0]
    # texts that say nothing new change nothing
    same = estimate_losses(answers, Answers(None, answers.labels, answers.probabilities))
    assert same.losses == pytest.approx(alone.losses)


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
