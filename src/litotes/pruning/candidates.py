"""What is compared with the dense model: the control, and a trained setting for each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litotes.encoder.packing import TextSet
from litotes.model.calibration import Calibration
from litotes.model.classifier import Classifier
from litotes.pruning.context import PruneContext
from litotes.pruning.cost import flops
from litotes.pruning.frontier import Kind
from litotes.pruning.loss import Answers
from litotes.pruning.phases import explore, search, settle, train_control
from litotes.pruning.search import FoundShares
from litotes.training.held_out import fit_calibrations
from litotes.training.inputs import PieceInputs, all_logits
from litotes.training.losses import has_label


@dataclass(frozen=True)
class Candidate:
    """The shares found for a target, the classifier trained with them, and its calibration."""

    kind: Kind
    target: float
    found: FoundShares
    classifier: Classifier
    calibration: Mapping[str, Calibration]


def train_candidates(
    context: PruneContext, found: Mapping[float, FoundShares] | None = None
) -> list[Candidate]:
    """The control, and a setting for each target that can be told from the others.

    found: the shares of the targets where they need not be searched for.
    """
    candidates = []
    if context.settings.control:
        classifier = train_control(context)
        everything = FoundShares((1.0,) * len(classifier.encoder.spec.walk), 0.0)
        candidates.append(_calibrate(context, "control", 1.0, everything, classifier))
    start = explore(context)
    if found is None:
        found = _search_all(context, start)
    for target, shares in found.items():
        classifier = settle(context, start, target, shares)
        candidates.append(_calibrate(context, "pruned", target, shares, classifier))
    return candidates


def _search_all(context: PruneContext, start: Classifier) -> dict[float, FoundShares]:
    targets = sorted(set(context.settings.targets))
    found = {target: search(context, start, target) for target in targets}
    # targets out of reach end in the same shares; the lowest stands for them
    different = {shares.shares: target for target, shares in reversed(found.items())}
    return {target: found[target] for target in sorted(different.values())}


def _calibrate(
    context: PruneContext, kind: Kind, target: float, found: FoundShares, classifier: Classifier
) -> Candidate:
    held_out = PieceInputs(context.held_out, context.device)
    calibration = fit_calibrations(classifier, held_out, context.recipe.training)
    return Candidate(kind, target, found, classifier.eval(), calibration)


def answer_texts(
    context: PruneContext, candidates: Sequence[Candidate], texts: TextSet, *, labelled: bool
) -> dict[str, Answers]:
    """The answers of dense and of every candidate, under each one's own temperature and threshold,
    to the texts that have a label for a task, or to all; {task: answers}, numbers left out.
    """
    inputs = PieceInputs(texts, context.device)
    dense = context.dense
    logits = [all_logits(inputs, dense.classifier)]
    calibrations = [dense.calibration]
    for candidate in candidates:
        logits.append(all_logits(inputs, candidate.classifier))
        calibrations.append(candidate.calibration)
    answers = {}
    for name, task in dense.classifier.tasks.items():
        if task.is_regression:
            continue
        chosen = has_label(texts.targets[name]) if labelled else slice(None)
        given = []
        for values, calibration in zip(logits, calibrations, strict=True):
            given.append(calibration.get(name, Calibration()).apply(values[name][chosen].numpy()))
        gold = texts.targets[name][chosen].numpy() if labelled else None
        labels, probabilities = zip(*given, strict=True)
        answers[name] = Answers(gold, np.array(labels), np.array(probabilities))
    return answers


def count_operations(classifier: Classifier, texts: TextSet) -> int:
    return flops(classifier.encoder, texts.lengths, firsts_only=classifier.firsts_only).total
