"""What an export changes: the same texts asked of torch and of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.machine import n_cores
from litotes.core.numbers import confusion, macro_f1
from litotes.core.progress import Watch
from litotes.core.values import Example, Task
from litotes.encoder.packing import encode_examples
from litotes.evaluation.scores import macro_f1_of
from litotes.model.calibration import Calibration, apply_to_each, thresholds_of
from litotes.model.checkpoint import Model
from litotes.model.runtime import compute_outputs, static_tier
from litotes.prediction.onnx_runtime import OnnxSession, Workers

_CHUNK = 32
"""Texts asked at a time."""

TOSS_UP = 0.1
"""Two labels whose probabilities differ by less, 55 % against 45 %, are as good as equally likely.
"""

Logits = Mapping[str, NDArray[Any]]
"""By task, (text, class) each."""


@dataclass(frozen=True)
class ExportLoss:
    """What the export changed in a task.

    n_changed: labels that are others, or numbers that moved noticeably.
    largest_difference: of a probability, or of the number.
    macro_f1: None without gold labels.
    n_toss_ups: changed labels that torch itself preferred by less than TOSS_UP.
    """

    task: str
    n: int
    n_changed: int
    largest_difference: float
    macro_f1: float | None
    macro_f1_exported: float | None
    n_toss_ups: int = 0

    @property
    def changed(self) -> float:
        return self.n_changed / self.n

    @property
    def lost(self) -> float:
        """The share of answers that are others although torch was decided."""
        return (self.n_changed - self.n_toss_ups) / self.n

    def in_words(self) -> str:
        toss_ups = ""
        if self.n_toss_ups:
            toss_ups = f", {self.n_toss_ups} of them a toss-up"
        return (
            f"{self.n_changed} of {self.n} answers of {self.task} change"
            f" ({self.changed:.1%}{toss_ups})"
        )


def measure_losses(
    model: Model, session: OnnxSession, examples: Sequence[Example], watch: Watch
) -> list[ExportLoss]:
    """The loss in every task of the model."""
    before, after = _answer(model, session, examples, watch)
    losses = []
    for name, task in model.classifier.tasks.items():
        gold = [example.labels.get(name) for example in examples]
        calibration = model.calibration_of(name)
        losses.append(compare(task, calibration, before[name], after[name], gold))
    return losses


def _answer(
    model: Model, session: OnnxSession, examples: Sequence[Example], watch: Watch
) -> tuple[Logits, Logits]:
    """The logits of all texts by torch, and by the exported file."""
    pieces = encode_examples(model.tokenizer, examples)
    workers, tier = Workers(session, n_cores()), static_tier(model)
    before: list[Logits] = []
    after: list[Logits] = []
    for start in range(0, len(pieces), _CHUNK):
        chunk = pieces[start : start + _CHUNK]
        before.append(compute_outputs(model, chunk).logits)
        # a table answers before the file is asked, as it does in a runtime
        outputs = tier.answer(chunk, workers.compute) if tier else workers.compute(chunk)
        after.append(outputs.logits)
        watch("measuring", start + len(chunk), len(pieces), "")
    return _join(before), _join(after)


def _join(chunks: Sequence[Logits]) -> Logits:
    return {task: np.concatenate([chunk[task] for chunk in chunks]) for task in chunks[0]}


def compare(
    task: Task,
    calibration: Calibration,
    torch_logits: NDArray[Any],
    logits: NDArray[Any],
    gold: Sequence[Any],
) -> ExportLoss:
    """The loss in one task. logits: (text, class)"""
    _check_finite(logits, task)
    if task.is_regression:
        return _compare_numbers(task, torch_logits[:, 0], logits[:, 0])
    if task.multi_label:
        return _compare_several(task, calibration, torch_logits, logits, gold)
    labels_before, before = calibration.apply(torch_logits)
    labels_after, after = calibration.apply(logits)
    has_changed = labels_before != labels_after  # (text,)
    margins = _margins(calibration, before, labels_before, labels_after)
    return ExportLoss(
        task.name,
        n=len(gold),
        n_changed=int(has_changed.sum()),
        largest_difference=float(np.abs(before - after).max()),
        macro_f1=_macro_f1(task, labels_before, gold),
        macro_f1_exported=_macro_f1(task, labels_after, gold),
        n_toss_ups=int((has_changed & (margins < TOSS_UP)).sum()),
    )


def _compare_several(
    task: Task,
    calibration: Calibration,
    torch_logits: NDArray[Any],
    logits: NDArray[Any],
    gold: Sequence[Any],
) -> ExportLoss:
    """An answer has changed when one of its labels has; it is a toss-up if each of those was."""
    given_before, before = apply_to_each(calibration, torch_logits)
    given_after, after = apply_to_each(calibration, logits)
    differs = given_before != given_after  # (text, class)
    margins = 2 * np.abs(before - thresholds_of(calibration, task.n_outputs))
    has_changed = differs.any(1)
    is_toss_up = has_changed & (margins < TOSS_UP).all(1, where=differs)
    known = [place for place, label in enumerate(gold) if label is not None]
    scores: list[float | None] = [None, None]
    if known:
        right = np.array([[one in gold[place] for one in task.labels] for place in known])
        for number, given in enumerate((given_before[known], given_after[known])):
            counts = np.stack([right & given, given, right]).sum(1)
            scores[number] = float(macro_f1_of(counts))
    return ExportLoss(
        task.name,
        n=len(gold),
        n_changed=int(has_changed.sum()),
        largest_difference=float(np.abs(before - after).max()),
        macro_f1=scores[0],
        macro_f1_exported=scores[1],
        n_toss_ups=int(is_toss_up.sum()),
    )


def _margins(
    calibration: Calibration,
    probabilities: NDArray[Any],
    labels: NDArray[Any],
    others: NDArray[Any],
) -> NDArray[Any]:
    """By how much each text's label was preferred to the other one, (text,): the difference of
    their probabilities, or, where a threshold decides, twice the distance from it, which is the
    same for a threshold of one half.
    """
    if calibration.threshold is not None:
        margins: NDArray[Any] = 2 * np.abs(probabilities[:, 1] - calibration.threshold)
        return margins
    rows = np.arange(len(labels))
    margins = probabilities[rows, labels] - probabilities[rows, others]
    return margins


def _check_finite(logits: NDArray[Any], task: Task) -> None:
    if not np.isfinite(logits).all():
        raise UserError(
            f"The exported file gives {task.name} answers that are not numbers: nothing was"
            " exported. Use the torch runtime."
        )


def _compare_numbers(task: Task, before: NDArray[Any], after: NDArray[Any]) -> ExportLoss:
    """A number has changed when it moved by more than a hundredth of the range of all of them."""
    moved = np.abs(before - after)
    n_changed = int((moved > 0.01 * np.ptp(before) + 1e-4).sum())
    return ExportLoss(task.name, len(moved), n_changed, float(moved.max()), None, None)


def _macro_f1(task: Task, labels: NDArray[Any], gold: Sequence[Any]) -> float | None:
    """Over the texts that have a gold label; None if none has."""
    known = [place for place, label in enumerate(gold) if label in task.labels]
    if not known:
        return None
    right = np.array([task.labels.index(gold[place]) for place in known])
    return float(macro_f1(confusion(right, labels[np.array(known)], task.n_outputs)))
