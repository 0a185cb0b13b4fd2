"""What texts show about the loss of macro-F1, and what a pruned model is expected to lose after it.

**What texts show.** Dense and pruned answers to the same texts are compared text by text. With p
the confusion proportions, s_c = p_c. + p_.c and C classes,

    macro-F1 = 1/C Σ_c 2 p_cc / s_c
    ∂ macro-F1 / ∂ p_gh = 1/C ([g = h] 2 / s_g − 2 p_gg / s_g² − 2 p_hh / s_h²)

A text with gold label g and answer h moves macro-F1 by this derivative at its cell: its influence,
whose mean over the texts is 0 (Hampel 1974). The influence on a loss is that on dense minus that on
pruned, and its covariance over texts, divided by their number, is that of the estimates.

Texts without a label sharpen them. What the dense and the pruned model believe predicts a text's
influence: Σ_c q(c) · influence if c were the gold label. The mean predictions f are known from many
texts, and

    loss − λ · (mean f on labelled texts − mean f on unlabelled texts)

has the same expectation for every λ. The λ with the smallest variance is taken: prediction-powered
inference (Angelopoulos et al. 2023, arXiv 2301.09633), tuned as in PPI++ (Angelopoulos, Duchi and
Zrnic 2023, arXiv 2311.01453). It cannot do much: where the answers agree there is nothing to
predict, and where they differ neither model knows who is right.

**What is to be expected.** The fastest of several settings whose loss *looks* small is often one
that was lucky. So no estimate stands alone. For the model s (the one to be chosen: 0; those of the
folds: 1 … K) and setting j, which needs r_j times fewer operations than dense,

    θ_sj = α + β log2 r_j + δ_s + ε_sj        what it truly loses
    L_s  ~ N(θ_s, S_s)                        what its texts showed, paired, S_s known

    α ~ N(0, (0.7·g)²)   training on, at the same operations (the dense control has r = 1)
    β ~ N⁺(0, (2·g)²)    fewer operations never help: a monotone frontier
    δ_s ~ N(0, ω²)       the luck of one dense model, which all its settings are compared with
    ε_sj ~ N(0, τ²)      the luck of one training

δ and ε make texts of one fold a cluster: many texts of four models still are four models. The
scales ω, τ (half-normal, 0.6 points) and g (1, 3 or 10: losses may be large) are summed over a
grid. All else is Gaussian, so the posterior of θ_0 is a mixture that is drawn from exactly. Its
mean is the expected loss. As far as the prior is right, it needs no correction for being the best
of many (Efron 2011, "Tweedie's formula and selection bias").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from litotes.core.numbers import Counts, Floats, confusion, macro_f1

LUCK = (0.15, 0.4, 1.0, 2.0)
"""The grid of ω and of τ, in points."""
LUCK_SCALE = 0.6
"""Of their half-normal prior."""
SCALES = {1.0: 0.7, 3.0: 0.2, 10.0: 0.1}
"""The grid of g, with its prior."""
SHIFT, SLOPE = 0.7, 2.0
"""Standard deviations of α and, before it is cut at 0, of β."""
N_DRAWS = 4000


@dataclass(frozen=True)
class Answers:
    """The answers of models to the texts of a task: first the dense model's, then each setting's.

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
    """Estimates the losses on labelled texts, sharpened by those without a label where there are
    any.
    """
    assert answers.gold is not None
    n_texts, n_classes = answers.n_texts, answers.probabilities.shape[-1]
    tables = [confusion(answers.gold, labels, n_classes) for labels in answers.labels]
    scores = 100 * macro_f1(np.array(tables))  # (model,)
    slopes = np.array([100 * _slopes(table) for table in tables])  # (model, gold, predicted)
    models = np.arange(len(slopes))[:, None]
    by_model = slopes[models, answers.gold, answers.labels]  # (model, text)
    influences = by_model[0] - by_model[1:]  # (setting, text)
    losses, covariance = scores[0] - scores[1:], _covariance(influences) / n_texts
    if unlabelled is not None and unlabelled.n_texts:
        here, there = _predictions(answers, slopes), _predictions(unlabelled, slopes)
        powers = [_power(one, by) for one, by in zip(influences, here, strict=True)]
        n_more = unlabelled.n_texts
        power = np.array(powers) / (1 + n_texts / n_more)  # (setting, belief)
        predicted, more = (np.einsum("sb,sbt->st", power, by) for by in (here, there))
        losses = losses - (predicted.mean(1) - more.mean(1))
        covariance = _covariance(influences - predicted) / n_texts + _covariance(more) / n_more
    return Evidence(
        losses, covariance + _unseen(tables[0], slopes[0], n_texts, len(losses)), n_texts
    )


def _power(influence: Floats, predictions: Floats) -> Floats:
    """Fits the influence (text,) by the predictions (belief, text): least squares."""
    centred = predictions - predictions.mean(1, keepdims=True)
    return np.linalg.lstsq(centred.T, influence - influence.mean(), rcond=1e-6)[0]


def _slopes(table: Counts) -> Floats:
    """The derivative of macro-F1 by each confusion proportion. (gold, predicted)"""
    share = table / max(table.sum(), 1)
    sums = share.sum(0) + share.sum(1)  # (class,)
    occurs = sums > 0
    inverse = np.divide(1.0, sums, out=np.zeros_like(sums), where=occurs)
    pull = 2 * np.diagonal(share) * inverse**2  # (class,)
    slopes = np.diag(2 * inverse) - pull[:, None] - pull[None, :]
    return np.asarray(slopes / max(int(occurs.sum()), 1))


def _predictions(answers: Answers, slopes: Floats) -> Floats:
    """The influences that the dense and the pruned model expect. (setting, belief, text)"""
    by_gold = [slope[:, labels].T for slope, labels in zip(slopes, answers.labels, strict=True)]
    dense, *settings = by_gold  # (text, gold) each
    expected = []
    for place, pruned in enumerate(settings, start=1):
        beliefs = answers.probabilities[[0, place]]  # (belief, text, class)
        expected.append((beliefs * (dense - pruned)).sum(-1))
    return np.array(expected)


def _covariance(values: Floats) -> Floats:
    """Covariance over texts. (setting, text) → (setting, setting)"""
    if values.shape[1] < 2:
        return np.zeros((len(values), len(values)))
    return np.atleast_2d(np.cov(values))


def _unseen(table: Counts, slopes: Floats, n_texts: int, n_settings: int) -> Floats:
    """Estimates what few texts cannot show: equal answers to 30 texts do not prove equal models.

    As if one text more were lost and one won by each setting (Bonett and Price 2012, for the
    difference of paired proportions). (setting, setting)
    """
    by_gold = table.sum(1) / max(table.sum(), 1)  # (gold,)
    right = np.diagonal(slopes)
    wrong = (slopes.sum(1) - right) / max(len(table) - 1, 1)
    one_text = float(by_gold @ (right - wrong)) / n_texts
    return np.asarray(2 * one_text**2 * np.eye(n_settings))


def draw_losses(
    ratios: Sequence[float], direct: Evidence | None, folds: Sequence[Evidence] = (), *, seed: int
) -> Floats:
    """Draws what the settings of the model to be chosen truly lose, in points. (draw, setting)

    ratios: times fewer operations than dense. direct: what that model's own answers showed; None
    where its texts are no judge. folds: what models made in the same way showed.
    """
    steps = np.log2(np.asarray(ratios, dtype=float))  # (setting,)
    models = list(enumerate(folds, start=1))
    if direct is not None:
        models.insert(0, (0, direct))
    weights, parts = [], []
    for omega, tau, (scale, prior) in product(LUCK, LUCK, SCALES.items()):
        # half-normal, on a grid whose steps grow with the value
        chance = prior * omega * tau * np.exp(-(omega**2 + tau**2) / (2 * LUCK_SCALE**2))
        scales = omega, tau, scale
        log_prior = float(np.log(chance))
        weight, mean, covariance = _condition(steps, models, scales, log_prior=log_prior)
        weights.append(weight)
        parts.append((mean, covariance))
    shares = np.exp(np.array(weights) - max(weights))
    generator = np.random.default_rng(seed)
    n_draws = generator.multinomial(N_DRAWS, shares / shares.sum()).tolist()  # (part,)
    drawn = [_draw(*part, n, generator) for part, n in zip(parts, n_draws, strict=True) if n]
    return np.concatenate(drawn)


def _condition(
    steps: Floats,
    models: Sequence[tuple[int, Evidence]],
    scales: tuple[float, float, float],
    *,
    log_prior: float,
) -> tuple[float, Floats, Floats]:
    """The posterior of (β, θ_0) given ω, τ and g by the rules of Gaussian conditioning: its log
    weight in the mixture, its mean (1 + setting,) and its covariance.
    """
    omega, tau, scale = scales
    n_settings = len(steps)
    slope = (SLOPE * scale) ** 2
    common = (SHIFT * scale) ** 2 + slope * np.outer(steps, steps)  # α and β, shared by all models
    own = omega**2 + tau**2 * np.eye(n_settings)  # δ and ε, of one model
    with_slope = slope * steps[None]
    prior = np.block([[np.array([[slope]]), with_slope], [with_slope.T, common + own]])
    if not models:
        return log_prior, np.zeros(1 + n_settings), prior
    seen = np.concatenate([evidence.losses for _, evidence in models])
    spread = np.tile(common, (len(models), len(models)))
    links = []  # what each model tells about (β, θ_0)
    for place, (number, evidence) in enumerate(models):
        block = slice(place * n_settings, (place + 1) * n_settings)
        spread[block, block] += own + evidence.covariance
        links.append(np.vstack([with_slope, common + own if number == 0 else common]))
    link = np.hstack(links)  # (1 + setting, model · setting)
    gain = np.linalg.solve(spread, link.T).T
    mean, covariance = gain @ seen, prior - gain @ link.T
    log_determinant = np.linalg.slogdet(spread)[1]
    log_density = -0.5 * (seen @ np.linalg.solve(spread, seen) + log_determinant)
    log_rising = log_ndtr(mean[0] / np.sqrt(covariance[0, 0]))  # β is not below 0
    return float(log_prior + log_density + log_rising), mean, covariance


def _draw(mean: Floats, covariance: Floats, n: int, generator: np.random.Generator) -> Floats:
    """θ_0 given β ≥ 0. (draw, setting)"""
    spread = np.sqrt(covariance[0, 0])
    lowest = ndtr(-mean[0] / spread)
    uniform = lowest + (1 - lowest) * generator.uniform(1e-9, 1 - 1e-9, size=n)
    # clipped: the normal's inverse is infinite at 0 and at 1
    beta = mean[0] + spread * ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))  # (draw,)
    link = covariance[1:, 0] / covariance[0, 0]  # (setting,)
    rest = covariance[1:, 1:] - np.outer(link, covariance[0, 1:])
    noise = generator.multivariate_normal(np.zeros(len(rest)), rest, size=n, method="eigh")
    return np.asarray(mean[1:] + (beta - mean[0])[:, None] * link + noise)
