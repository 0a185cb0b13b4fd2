"""How far the models of a study can be believed when they say how sure they are, before and after
calibration.

A run keeps the calibrated probability of the label it gave. With two classes the uncalibrated one
follows from it exactly:

    p₁ = P(class 1)        logit(p₁) · T = the logit before it was divided by the temperature T        label before = [p₁' ≥ ½]

A calibration error has no honest interval (chance alone makes it larger, resampling even more so),
but its bins have one each, and so has the excess, mean confidence less the share right: how much
too sure the models are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.core.counts import Counts, Floats
from litotes.evaluation.intervals import seed_margin, widened
from litotes.evaluation.reliability import Reliability, reliability
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.study.overall import Estimate
from litotes.study.results import Answers, Findings

_ROUNDED = 5e-7  # probabilities were rounded to six digits: nearer to 0 or 1 nothing is known


@dataclass(frozen=True)
class Believed:
    """Answers and how sure they were: the reliability of all of them, and the excess of confidence
    over the share right.
    """

    reliability: Reliability
    excess: Estimate


@dataclass(frozen=True)
class Confidence:
    """All answers of an experiment's models to one task, over cells and seeds; temperatures: the
    smallest and the largest.
    """

    experiment: str
    task: str
    before: Believed
    after: Believed
    temperatures: tuple[float, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": list(confidence_words(self))}


def confidences(found: Findings) -> tuple[Confidence, ...]:
    """One per task with two classes; of more classes the probability of one says nothing about the
    others before calibration.
    """
    by_task: dict[str, list[Answers]] = {}
    for panel in found.panels:
        by_task.setdefault(panel.table.task, []).extend(panel.answers.values())
    return tuple(
        _confidence(found.experiment.settings.name, task, answers)
        for task, answers in by_task.items()
        if all(one.n_classes == 2 for one in answers)
    )


def confidence_words(one: Confidence) -> Iterator[str]:
    """Sure and right, before and after."""
    before, after = one.before, one.after
    yield (
        f"{one.experiment}, {one.task}: calibration error {before.reliability.ece:.3f} before"
        f" calibration, {after.reliability.ece:.3f} after; confidence exceeds the share right by"
        f" {before.excess.signed()} before, by {after.excess.signed()} after."
    )
    low, high = one.temperatures
    if low == high == 1.0:
        yield "No temperature was fitted."
    elif after.reliability.ece > before.reliability.ece:
        yield (
            "Calibration made it worse here: temperatures were fitted on held-out texts of what"
            f" was trained on, and these ({low:.2f} to {high:.2f}) do not travel."
        )


def uncalibrated(answers: Answers) -> tuple[Counts, Floats]:
    """The labels given and their probabilities as they were before calibration.

    (seed, text) each
    """
    first = np.where(answers.answers == 1, answers.probability, 1 - answers.probability).clip(
        _ROUNDED, 1 - _ROUNDED
    )
    logit = np.log(first / (1 - first)) * answers.temperature[:, None]  # (seed, text)
    before = 1 / (1 + np.exp(-logit))
    return (before >= 0.5).astype(np.int64), np.maximum(before, 1 - before)


def _confidence(experiment: str, task: str, parts: Sequence[Answers]) -> Confidence:
    temperatures = np.concatenate([part.temperature for part in parts])
    return Confidence(
        experiment,
        task,
        before=_believed(parts, [uncalibrated(part) for part in parts]),
        after=_believed(parts, [(part.answers, part.probability) for part in parts]),
        temperatures=(float(temperatures.min()), float(temperatures.max())),
    )


def _believed(parts: Sequence[Answers], given: Sequence[tuple[Counts, Floats]]) -> Believed:
    """given: the labels and their probabilities, (seed, text) each, of every part."""
    right = [labels == part.gold for part, (labels, _) in zip(parts, given, strict=True)]
    sure = [probability for _, probability in given]
    whole = reliability(
        np.concatenate([one.ravel() for one in sure]),
        np.concatenate([one.ravel() for one in right]),
    )
    # by texts: (seed, text), summed over the cells that were tested on them
    excess: dict[str, Floats] = {}
    for part, confident, hit in zip(parts, sure, right, strict=True):
        excess[part.texts] = excess.get(part.texts, 0.0) + (confident - hit)
    return Believed(whole, _excess(list(excess.values()), whole.n))


def _excess(sums: Sequence[Floats], n: int) -> Estimate:
    """Mean excess of n answers, with its interval over texts, resampled for all cells and seeds
    together, and over seeds.
    """
    generator = np.random.default_rng(0)
    by_seed = sum(one.sum(1) for one in sums) * len(sums[0]) / n  # (seed,)
    drawn = np.zeros(N_RESAMPLES)
    for one in sums:
        n_texts = one.shape[1]
        drawn += (
            generator.multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=N_RESAMPLES)
            @ one.sum(0)
            / n
        )
    value = float(np.mean(by_seed))
    return Estimate(
        value, widened(value, interval(drawn), seed_margin(np.asarray(by_seed)), within=(-1.0, 1.0))
    )
