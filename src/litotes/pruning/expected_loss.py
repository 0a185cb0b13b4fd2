"""What a pruned model is expected to lose on new texts, after all that was seen of it, of its
neighbours on the frontier and of models made in the same way.

The fastest of several settings whose loss *looks* small is often one that was lucky. So no estimate
stands alone. For the model s (the one to be chosen: 0; those of the folds: 1 … K) and setting j,
which needs r_j times fewer operations than dense,

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from litotes.core.numbers import Floats
from litotes.pruning.loss import Evidence

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
class _Mixture:
    """One part of the posterior, given ω, τ and g, of (β, θ_0); log_weight: how well it explains
    what was seen, times its prior.
    """

    log_weight: float
    mean: Floats  # (1 + setting,)
    covariance: Floats  # (1 + setting, 1 + setting)


def draw_losses(
    ratios: Sequence[float], direct: Evidence | None, folds: Sequence[Evidence] = (), *, seed: int
) -> Floats:
    """Draws of what the settings of the model to be chosen truly lose, in points. (draw, setting)

    ratios: times fewer operations than dense. direct: what that model's own answers showed; None
    where its texts are no judge. folds: what models made in the same way showed.
    """
    steps = np.log2(np.asarray(ratios, dtype=float))  # (setting,)
    sources = ([] if direct is None else [(0, direct)]) + list(enumerate(folds, start=1))
    parts = list(_mixtures(steps, sources))
    log_weights = np.array([part.log_weight for part in parts])
    weights = np.exp(log_weights - log_weights.max())
    generator = np.random.default_rng(seed)
    n_draws = generator.multinomial(N_DRAWS, weights / weights.sum())  # (part,)
    drawn = [_draw(part, int(n), generator) for part, n in zip(parts, n_draws, strict=True) if n]
    return np.concatenate(drawn)


def _mixtures(steps: Floats, sources: Sequence[tuple[int, Evidence]]) -> Iterator[_Mixture]:
    for omega, tau, (scale, prior) in product(LUCK, LUCK, SCALES.items()):
        # half-normal, on a grid whose steps grow with the value
        chance = prior * omega * tau * np.exp(-(omega**2 + tau**2) / (2 * LUCK_SCALE**2))
        yield _condition(steps, sources, (omega, tau, scale), float(np.log(chance)))


def _condition(
    steps: Floats,
    sources: Sequence[tuple[int, Evidence]],
    scales: tuple[float, float, float],
    log_prior: float,
) -> _Mixture:
    """The posterior of (β, θ_0) by the rules of Gaussian conditioning, and its weight."""
    omega, tau, scale = scales
    n_settings = len(steps)
    slope = (SLOPE * scale) ** 2
    common = (SHIFT * scale) ** 2 + slope * np.outer(steps, steps)  # α and β, shared by all models
    own = omega**2 + tau**2 * np.eye(n_settings)  # δ and ε, of one model
    prior = np.block(
        [[np.array([[slope]]), slope * steps[None]], [slope * steps[:, None], common + own]]
    )
    if not sources:
        return _Mixture(log_prior, np.zeros(1 + n_settings), prior)
    seen = np.concatenate([evidence.losses for _, evidence in sources])
    spread = np.tile(common, (len(sources), len(sources)))
    links = []  # what each source tells about (β, θ_0)
    for place, (model, evidence) in enumerate(sources):
        block = slice(place * n_settings, (place + 1) * n_settings)
        spread[block, block] += own + evidence.covariance
        links.append(np.vstack([slope * steps[None], common + own if model == 0 else common]))
    link = np.hstack(links)  # (1 + setting, source · setting)
    gain = np.linalg.solve(spread, link.T).T
    mean, covariance = gain @ seen, prior - gain @ link.T
    _, log_determinant = np.linalg.slogdet(spread)
    log_density = -0.5 * (seen @ np.linalg.solve(spread, seen) + log_determinant)
    log_rising = log_ndtr(mean[0] / np.sqrt(covariance[0, 0]))  # β is not below 0
    return _Mixture(float(log_prior + log_density + log_rising), mean, covariance)


def _draw(part: _Mixture, n: int, generator: np.random.Generator) -> Floats:
    """θ_0 given β ≥ 0. (draw, setting)"""
    spread = np.sqrt(part.covariance[0, 0])
    lowest = ndtr(-part.mean[0] / spread)
    uniform = lowest + (1 - lowest) * generator.uniform(1e-9, 1 - 1e-9, size=n)
    beta = part.mean[0] + spread * ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))  # (draw,)
    link = part.covariance[1:, 0] / part.covariance[0, 0]  # (setting,)
    rest = part.covariance[1:, 1:] - np.outer(link, part.covariance[0, 1:])
    noise = generator.multivariate_normal(np.zeros(len(rest)), rest, size=n, method="eigh")
    return np.asarray(part.mean[1:] + (beta - part.mean[0])[:, None] * link + noise)
