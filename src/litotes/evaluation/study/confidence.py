"""How far the models of a study can be believed when they say how sure they are, before and after calibration.

A run keeps the calibrated probability of the label it gave. With two classes the uncalibrated one follows from it exactly:

    p₁ = P(class 1)        logit(p₁) · T = the logit before it was divided by the temperature T        label before = [p₁' ≥ ½]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.counting import Counts, Floats
from litotes.evaluation.reliability import Reliability, reliability
from litotes.evaluation.study.results import Answers, Findings

_ROUNDED = 5e-7  # probabilities were rounded to six digits: nearer to 0 or 1 nothing is known


@dataclass(frozen=True)
class Confidence:
    """All answers of an experiment's models to one task, over cells and seeds; temperatures: the smallest and the largest."""

    experiment: str
    task: str
    before: Reliability
    after: Reliability
    temperatures: tuple[float, float]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": list(confidence_words(self))}


def confidences(found: Findings) -> tuple[Confidence, ...]:
    """One per task with two classes; of more classes the probability of one says nothing about the others before calibration."""
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
        f"{one.experiment}, {one.task} ({after.n:,} answers): calibration error {before.ece:.3f} before calibration, "
        f"{after.ece:.3f} after; mean confidence {before.confidence:.3f} against {before.accuracy:.3f} right before, "
        f"{after.confidence:.3f} against {after.accuracy:.3f} after."
    )
    low, high = one.temperatures
    if low == high == 1.0:
        yield "No temperature was fitted."
    elif after.ece > before.ece:
        yield (
            "Calibration made it worse here: temperatures were fitted on held-out texts of what was trained on, "
            f"and these ({low:.2f} to {high:.2f}) do not travel."
        )


def uncalibrated(answers: Answers) -> tuple[Counts, Floats]:
    """The labels given and their probabilities as they were before calibration. (seed, text) each"""
    first = np.where(answers.answers == 1, answers.probability, 1 - answers.probability).clip(_ROUNDED, 1 - _ROUNDED)
    logit = np.log(first / (1 - first)) * answers.temperature[:, None]  # (seed, text)
    before = 1 / (1 + np.exp(-logit))
    return (before >= 0.5).astype(np.int64), np.maximum(before, 1 - before)


def _confidence(experiment: str, task: str, parts: Iterable[Answers]) -> Confidence:
    parts = list(parts)
    before = [uncalibrated(part) for part in parts]
    temperatures = np.concatenate([part.temperature for part in parts])
    return Confidence(
        experiment,
        task,
        before=reliability(_joined(sure for _, sure in before), _right(zip((labels for labels, _ in before), parts, strict=True))),
        after=reliability(_joined(part.probability for part in parts), _right((part.answers, part) for part in parts)),
        temperatures=(float(temperatures.min()), float(temperatures.max())),
    )


def _right(answered: Iterable[tuple[Counts, Answers]]) -> Any:
    return _joined(labels == part.gold for labels, part in answered)


def _joined(parts: Iterable[Any]) -> Any:
    return np.concatenate([part.ravel() for part in parts])
