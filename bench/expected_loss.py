"""Simulated prunings: is the loss that is expected of the chosen one its true loss?

    python bench/expected_loss.py [N]

N (default 200) worlds for each line: a frontier that rises, the luck of each model, and texts with
answers of a dense model and of five settings. Prints how often 95 % intervals cover the true
losses, how much more than expected the chosen setting truly loses, the same for a choice by what
the texts showed, and how often a chosen one is within half a point, said and true.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from litotes.core.numbers import Floats, confusion, macro_f1
from litotes.pruning.expected_loss import draw_losses
from litotes.pruning.loss import Answers, Evidence, estimate_losses

RATIOS = (1.0, 1.5, 2.0, 2.5, 3.0)
BUDGET = 0.5
N_TRUE = 40_000
"""Texts on which a loss counts as true."""
SETUPS = {
    "300 texts": (300, 0, "rise"),
    "300 texts, 4 folds of 400": (300, 4, "rise"),
    "1,500 texts": (1500, 0, "rise"),
    "300 texts, losses that grow with the square": (300, 0, "bend"),
    "300 texts, a step somewhere": (300, 0, "step"),
}
"""Texts that choose, folds, and the shape of the frontier; the estimate supposes the first."""


def main(n_worlds: int) -> None:
    for name, (n_texts, n_folds, shape) in SETUPS.items():
        tally = Tally()
        generator = np.random.default_rng(0)
        for number in range(n_worlds):
            truth, direct, folds = make_world(generator, n_texts, n_folds, shape)
            draws = draw_losses(RATIOS, direct, folds, seed=number)
            tally.add(truth, direct.losses, draws)
        print(f"{name}: {tally.in_words()}", flush=True)


def make_world(
    generator: np.random.Generator, n_texts: int, n_folds: int, shape: str
) -> tuple[Floats, Evidence, list[Evidence]]:
    """True losses of a model's settings, what its texts showed, and what folds of 400 showed."""
    frontier = generator.normal(0, 0.5) + draw_frontier(generator, shape)  # (setting,)
    wanted = frontier + draw_luck(generator)
    truth = score_losses(draw_answers(generator, wanted, N_TRUE))
    direct = estimate_losses(draw_answers(generator, wanted, n_texts))
    folds = []
    for _ in range(n_folds):
        answers = draw_answers(generator, frontier + draw_luck(generator), 400)
        folds.append(estimate_losses(answers))
    return truth, direct, folds


def draw_frontier(generator: np.random.Generator, shape: str) -> Floats:
    """What the settings lose without luck. (setting,)"""
    ratios, size = np.array(RATIOS), abs(generator.normal())
    losses = {
        "rise": 1.2 * np.log2(ratios),
        "bend": (ratios - 1) ** 2 / 1.5,
        "step": 3.0 * (ratios > generator.uniform(1.2, 3.2)),
    }
    return np.asarray(size * losses[shape])


def draw_luck(generator: np.random.Generator) -> Floats:
    """Of a dense model, and of each training. (setting,)"""
    return np.asarray(generator.normal(0, 0.5) + generator.normal(0, 0.4, len(RATIOS)))


def draw_answers(generator: np.random.Generator, losses: Floats, n: int) -> Answers:
    """Texts, 3 in 10 of the second label; a dense model that is right on 85 in 100, and settings
    that differ from it on 3 to 11 in 100 texts and lose about `losses` points by it.
    """
    gold = (generator.random(n) < 0.3).astype(np.int64)
    right = generator.random(n) < 0.85
    dense = np.where(right, gold, 1 - gold)
    common = generator.random(n)  # texts that are hard for all settings
    labels = [dense]
    for place, loss in enumerate(losses):
        draw = np.where(generator.random(n) < 0.6, common, generator.random(n))
        differ, net = 0.07 * (0.4 + 0.3 * place), 0.009 * loss
        chance = np.where(right, (differ + net) / 1.7, (differ - net) / 0.3)
        labels.append(np.where(draw < chance, 1 - dense, dense))
    given = np.array(labels)  # (model, text)
    second = np.where(given == 1, 0.8, 0.2)
    return Answers(gold, given, np.stack([1 - second, second], axis=-1))


def score_losses(answers: Answers) -> Floats:
    """Macro-F1 of dense less that of each setting, in points. (setting,)"""
    assert answers.gold is not None
    tables = np.array([confusion(answers.gold, one, 2) for one in answers.labels])
    scores = 100 * macro_f1(tables)
    return np.asarray(scores[0] - scores[1:])


@dataclass
class Tally:
    """What came of the worlds so far."""

    covered: list[float] = field(default_factory=list)
    surprise: list[float] = field(default_factory=list)
    raw_surprise: list[float] = field(default_factory=list)
    said: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    def add(self, truth: Floats, shown: Floats, draws: Floats) -> None:
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        self.covered.append(float(np.mean((low <= truth) & (truth <= high))))
        expected = draws.mean(0)
        if (place := choose_fastest(expected)) is not None:
            self.surprise.append(float(truth[place] - expected[place]))
            self.said.append(float(np.mean(draws[:, place] <= BUDGET)))
            self.kept.append(float(truth[place] <= BUDGET))
        if (place := choose_fastest(shown)) is not None:
            self.raw_surprise.append(float(truth[place] - shown[place]))

    def in_words(self) -> str:
        return (
            f"coverage {np.mean(self.covered):.3f}; chosen {len(self.surprise)} of"
            f" {len(self.covered)}, truly {np.mean(self.surprise):+.2f} points from expected"
            f" ({np.mean(self.raw_surprise):+.2f} by what texts showed), within {BUDGET} said"
            f" {np.mean(self.said):.2f}, true {np.mean(self.kept):.2f}"
        )


def choose_fastest(losses: Sequence[float] | Floats) -> int | None:
    """The place of the fastest setting within the budget; the first is the control."""
    within = [place for place in range(1, len(losses)) if losses[place] <= BUDGET]
    return max(within, default=None)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
