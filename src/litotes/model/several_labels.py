"""Tasks whose answer may be several labels of one text, or none: each label is decided alone.

    p_c    = 1 / (1 + exp(−z_c / T))
    given  = {c : p_c ≥ threshold_c}

T is one temperature for all labels (Guo et al. 2017, arXiv 1706.04599, §4.2, for the two classes
"given" and "not given"). A threshold is learned for each label by the rule of a task with two
labels (`calibration.fit_threshold`): it stays one half unless another is reliably better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats
from litotes.core.values import Answer, Task
from litotes.model.calibration import Calibration, fit_temperature, fit_threshold

HALF = 0.5
Flags = NDArray[np.bool_]


def apply_to_each(calibration: Calibration, logits: NDArray[Any]) -> tuple[Flags, Floats]:
    """Which labels are given, and the probability of each; (text, class) both."""
    precise = np.asarray(logits, dtype=np.float64) / calibration.temperature
    probabilities = np.exp(-np.logaddexp(0.0, -precise))
    return probabilities >= thresholds_of(calibration, logits.shape[1]), probabilities


def thresholds_of(calibration: Calibration, n_labels: int) -> Floats:
    """(class,)"""
    if calibration.thresholds is None:
        return np.full(n_labels, HALF)
    if len(calibration.thresholds) != n_labels:
        raise ValueError(f"{len(calibration.thresholds)} thresholds for {n_labels} labels")
    return np.array(calibration.thresholds)


def fit_each(
    logits: NDArray[Any],
    gold: NDArray[Any],
    *,
    groups: Sequence[object] | None = None,
    with_threshold: bool = True,
) -> Calibration:
    """The calibration of texts kept apart. logits, gold (1: given): (text, class); groups (text,)

    Texts that are all answered correctly leave the temperature at 1, as of a task with one label.
    """
    if not len(gold):
        return Calibration()
    right = np.asarray(gold).astype(np.int64)
    flat = np.asarray(logits, dtype=np.float64).reshape(-1, 1)
    two = np.concatenate([np.zeros_like(flat), flat], axis=1)  # (text × class, 2)
    is_faultless = bool(((logits > 0) == right).all())
    temperature = 1.0 if is_faultless else fit_temperature(two, right.reshape(-1))
    scaled = Calibration(temperature, None, len(gold))
    if not with_threshold:
        return scaled
    _, probabilities = apply_to_each(scaled, logits)
    columns = zip(probabilities.T, right.T, strict=True)
    thresholds = tuple(fit_threshold(own, given, groups) for own, given in columns)
    return Calibration(temperature, None, len(gold), thresholds)


def to_several_answers(logits: NDArray[Any], task: Task, calibration: Calibration) -> list[Answer]:
    """The labels of every text, with the probability of each. logits: (text, class)"""
    given, probabilities = apply_to_each(calibration, logits)
    answers = []
    for flags, shares in zip(given.tolist(), probabilities.tolist(), strict=True):
        chosen = [label for label, is_given in zip(task.labels, flags, strict=True) if is_given]
        by_label = dict(zip(task.labels, shares, strict=True))
        answers.append(Answer(tuple(chosen), None, by_label))
    return answers


def label_to_explain(answer: Answer) -> str:
    """The surest of the labels that were given; where none was, the likeliest of all."""
    given = answer.label if isinstance(answer.label, tuple) else ()
    return max(given or answer.probabilities, key=lambda label: answer.probabilities[label])
