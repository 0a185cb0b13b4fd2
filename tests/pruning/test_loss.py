"""What texts show about a loss: estimates, their errors, and what texts without labels add."""

from __future__ import annotations

import numpy as np
import pytest

from litotes.core.numbers import Counts, Floats, confusion, macro_f1
from litotes.pruning.losses import Answers, estimate_losses

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
