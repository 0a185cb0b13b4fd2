"""What texts show about the loss of macro-F1: an estimate for every setting, with its covariance.

Dense and pruned answers to the same texts are compared text by text. With p the confusion
proportions, s_c = p_c. + p_.c and C classes,

    macro-F1 = 1/C Σ_c 2 p_cc / s_c
    ∂ macro-F1 / ∂ p_gh = 1/C ([g = h] 2 / s_g − 2 p_gg / s_g² − 2 p_hh / s_h²)

A text with gold label g and answer h moves macro-F1 by this derivative at its cell: its influence,
whose mean over the texts is 0 (Hampel 1974). The influence on a loss is that on dense less that on
pruned, and its covariance over texts, divided by their number, is that of the estimates.

Texts without a label sharpen them. What the dense and the pruned model believe predicts a text's
influence: Σ_c q(c) · influence if c were the gold label. The mean predictions f are known from many
texts, and

    loss − λ · (mean f on labelled texts − mean f on unlabelled texts)

has the same expectation for every λ. The λ with the smallest variance is taken: prediction-powered
inference (Angelopoulos et al. 2023, arXiv 2301.09633), tuned as in PPI++ (Angelopoulos, Duchi and
Zrnic 2023, arXiv 2311.01453). It cannot do much: where the answers agree there is nothing to
predict, and where they differ neither model knows who is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats, confusion, macro_f1

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """What models say about the texts of a task; the first model is dense, the others are settings.

    gold: (text,), or None where there are no labels. labels: (model, text). probabilities:
    (model, text, class), calibrated.
    """

    gold: Counts | None
    labels: Counts
    probabilities: Floats

    @property
    def n_texts(self) -> int:
        return int(self.labels.shape[1])

    def agreement(self) -> Floats:
        """The share of texts with the dense model's label, by setting. (setting,)"""
        return np.asarray((self.labels[1:] == self.labels[0]).mean(1))


@dataclass(frozen=True)
class Evidence:
    """The losses that one dense model's settings showed on some texts, in points of macro-F1.

    losses: (setting,). covariance: of their errors, (setting, setting). n_texts: with a label.
    """

    losses: Floats
    covariance: Floats
    n_texts: int


def estimate_losses(answers: Answers, unlabelled: Answers | None = None) -> Evidence:
    """The losses on labelled texts, sharpened by those without a label where there are any."""
    assert answers.gold is not None
    n_texts, n_classes = answers.n_texts, answers.probabilities.shape[-1]
    tables = [confusion(answers.gold, labels, n_classes) for labels in answers.labels]
    scores = 100 * macro_f1(np.array(tables))  # (model,)
    slopes = np.array([100 * _slopes(table) for table in tables])  # (model, gold, predicted)
    influences = _influences(answers.gold, answers.labels, slopes)  # (setting, text)
    losses, covariance = scores[0] - scores[1:], _covariance(influences) / n_texts
    if unlabelled is not None and unlabelled.n_texts:
        losses, covariance = _sharpen(losses, influences, answers, unlabelled, slopes)
    return Evidence(
        losses, covariance + _unseen(tables[0], slopes[0], n_texts, len(losses)), n_texts
    )


def _sharpen(
    losses: Floats, influences: Floats, answers: Answers, unlabelled: Answers, slopes: Floats
) -> tuple[Floats, Floats]:
    """Losses (setting,) and covariance (setting, setting), power-tuned for each setting."""
    n_texts, n_more = answers.n_texts, unlabelled.n_texts
    here, there = _predictions(answers, slopes), _predictions(unlabelled, slopes)
    powers = [_power(one, by) for one, by in zip(influences, here, strict=True)]
    power = np.array(powers) / (1 + n_texts / n_more)  # (setting, belief)
    predicted, more = (np.einsum("sb,sbt->st", power, by) for by in (here, there))
    sharper = losses - (predicted.mean(1) - more.mean(1))
    spread = _covariance(influences - predicted) / n_texts + _covariance(more) / n_more
    return sharper, spread


def _power(influence: Floats, predictions: Floats) -> Floats:
    """How much each prediction (belief, text) says about the influence (text,): least squares."""
    centred = predictions - predictions.mean(1, keepdims=True)
    power, *_ = np.linalg.lstsq(centred.T, influence - influence.mean(), rcond=1e-6)
    return np.asarray(power)


def _slopes(table: Counts) -> Floats:
    """The derivative of macro-F1 by each confusion proportion. (gold, predicted)"""
    share = table / max(table.sum(), 1)
    sums = share.sum(0) + share.sum(1)  # (class,)
    occurs = sums > 0
    inverse = np.divide(1.0, sums, out=np.zeros_like(sums), where=occurs)
    pull = 2 * np.diagonal(share) * inverse**2  # (class,)
    slopes = np.diag(2 * inverse) - pull[:, None] - pull[None, :]
    return np.asarray(slopes / max(int(occurs.sum()), 1))


def _influences(gold: Counts, labels: Counts, slopes: Floats) -> Floats:
    """Of each text on each loss. (setting, text)"""
    by_model = np.array([slope[gold, given] for slope, given in zip(slopes, labels, strict=True)])
    return np.asarray(by_model[0] - by_model[1:])


def _predictions(answers: Answers, slopes: Floats) -> Floats:
    """The influences that the dense and the pruned model expect. (setting, belief, text)"""
    expected = []
    dense_slopes = slopes[0][:, answers.labels[0]].T  # (text, gold)
    for place in range(1, len(answers.labels)):
        difference = dense_slopes - slopes[place][:, answers.labels[place]].T  # (text, gold)
        beliefs = answers.probabilities[[0, place]]  # (belief, text, class)
        expected.append((beliefs * difference).sum(-1))
    return np.array(expected)


def _covariance(values: Floats) -> Floats:
    """Over texts. (setting, text) → (setting, setting)"""
    if values.shape[1] < 2:
        return np.zeros((len(values), len(values)))
    return np.atleast_2d(np.cov(values))


def _unseen(table: Counts, slopes: Floats, n_texts: int, n_settings: int) -> Floats:
    """What few texts cannot show: equal answers to 30 texts do not prove equal models.

    As if one text more were lost and one won by each setting (Bonett and Price 2012, for the
    difference of paired proportions). (setting, setting)
    """
    n_classes = len(table)
    by_gold = table.sum(1) / max(table.sum(), 1)  # (gold,)
    right = np.diagonal(slopes)
    wrong = (slopes.sum(1) - right) / max(n_classes - 1, 1)
    one_text = float(by_gold @ (right - wrong)) / n_texts
    return np.asarray(2 * one_text**2 * np.eye(n_settings))
