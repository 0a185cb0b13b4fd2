"""How reliable the confidence of a study's models is, before and after calibration.

A run keeps the calibrated probability of the label it gave. With two classes the uncalibrated one
follows from it exactly:

    p₁ = P(class 1)
    logit(p₁) · T = the logit before it was divided by the temperature T
    label before = [p₁' ≥ ½]

A calibration error has no honest interval (chance alone makes it larger, resampling even more so),
but its bins have one each, and so has the excess, mean confidence less the share right: how much
too confident the models are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.core.numbers import Counts, Floats
from litotes.evaluation.reliability import Reliability, reliability
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import seed_margin, widen_interval
from litotes.study.overall import Estimate
from litotes.study.results import ExperimentResults
from litotes.study.run_files import CellAnswers

_ROUNDED = 5e-7  # probabilities were rounded to six digits: nearer to 0 or 1 nothing is known


@dataclass(frozen=True)
class ConfidenceCheck:
    """The reliability of all answers, and the excess of confidence over the share right."""

    reliability: Reliability
    excess: Estimate


@dataclass(frozen=True)
class Confidence:
    """All answers of an experiment's models to one task, over cells and seeds.

    temperatures: the smallest and the largest.
    """

    experiment: str
    task: str
    before: ConfidenceCheck
    after: ConfidenceCheck
    temperatures: tuple[float, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": list(confidence_sentences(self))}


def check_confidence(results: ExperimentResults) -> tuple[Confidence, ...]:
    """One value per task with two classes.

    With more classes the probability of one says nothing about the others before calibration.
    """
    by_task: dict[str, list[CellAnswers]] = {}
    for table in results.tables:
        by_task.setdefault(table.matrix.task, []).extend(table.answers.values())
    found = []
    for task, answers in by_task.items():
        if all(one.n_classes == 2 for one in answers):
            found.append(_confidence(results.name, task, answers))
    return tuple(found)


def confidence_sentences(one: Confidence) -> Iterator[str]:
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


def uncalibrate(answers: CellAnswers) -> tuple[Counts, Floats]:
    """The labels given and their probabilities as they were before calibration.

    (seed, text) each
    """
    first = np.where(answers.answers == 1, answers.probability, 1 - answers.probability)
    first = first.clip(_ROUNDED, 1 - _ROUNDED)
    logit = np.log(first / (1 - first)) * answers.temperature[:, None]  # (seed, text)
    before = 1 / (1 + np.exp(-logit))
    return (before >= 0.5).astype(np.int64), np.maximum(before, 1 - before)


def _confidence(experiment: str, task: str, parts: Sequence[CellAnswers]) -> Confidence:
    temperatures = np.concatenate([part.temperature for part in parts])
    return Confidence(
        experiment,
        task,
        before=_check(parts, [uncalibrate(part) for part in parts]),
        after=_check(parts, [(part.answers, part.probability) for part in parts]),
        temperatures=(float(temperatures.min()), float(temperatures.max())),
    )


def _check(parts: Sequence[CellAnswers], given: Sequence[tuple[Counts, Floats]]) -> ConfidenceCheck:
    """given: the labels and their probabilities, (seed, text) each, of every part."""
    sure, right = [], []
    excess: dict[str, Floats] = {}  # by texts: (seed, text), summed over the cells tested on them
    for part, (labels, probability) in zip(parts, given, strict=True):
        hit = labels == part.gold
        sure.append(probability.ravel())
        right.append(hit.ravel())
        excess[part.texts] = excess.get(part.texts, 0.0) + (probability - hit)
    whole = reliability(np.concatenate(sure), np.concatenate(right))
    return ConfidenceCheck(whole, _mean_excess(list(excess.values()), whole.n))


def _mean_excess(sums: Sequence[Floats], n: int) -> Estimate:
    """Mean excess of n answers, with its interval over texts and over seeds.

    Texts are resampled for all cells and seeds together. sums: (seed, text) each
    """
    by_seed = sum(one.sum(1) for one in sums) * len(sums[0]) / n  # (seed,)
    value = float(np.mean(by_seed))
    margin = seed_margin(np.asarray(by_seed))
    over_texts = interval(_resample_excess(sums, n))
    return Estimate(value, widen_interval(value, over_texts, margin, within=(-1.0, 1.0)))


def _resample_excess(sums: Sequence[Floats], n: int) -> Floats:
    """(resample,)"""
    generator = np.random.default_rng(0)
    drawn = np.zeros(N_RESAMPLES)
    for one in sums:
        n_texts = one.shape[1]
        shares = np.full(n_texts, 1 / n_texts)
        drawn += generator.multinomial(n_texts, shares, size=N_RESAMPLES) @ one.sum(0) / n
    return drawn
