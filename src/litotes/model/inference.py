"""Pieces in, logits out, and what logits answer: every consumer asks a model this way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.values import Answer, Task
from litotes.model.calibration import Calibration
from litotes.model.label_sets import LabelSets, find_labels, label_shares
from litotes.model.several_labels import to_several_answers
from litotes.text.tokenizer import Pieces

if TYPE_CHECKING:  # an exported model answers without torch, which takes seconds to import
    import torch
    from torch import Tensor

    from litotes.model.checkpoint import Model
    from litotes.text.batch import Batch


@dataclass(frozen=True)
class Outputs:
    """What a model computed for some texts. logits: {task: (text, class)}.

    layers: after how many layers each text was answered, (text,); None: of a model without exits.
    """

    logits: dict[str, NDArray[np.float32]]
    layers: NDArray[np.int64] | None = None


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Those of several groups of texts, one after the other."""
    logits = {}
    for task in parts[0].logits:
        logits[task] = np.concatenate([part.logits[task] for part in parts])
    layers = [part.layers for part in parts if part.layers is not None]
    return Outputs(logits, np.concatenate(layers) if layers else None)


def compute_outputs(model: Model, texts: Sequence[Pieces]) -> Outputs:
    """As the model answers: on a CPU a text leaves where an exit is sure of it, elsewhere all go to
    the end.
    """
    import torch

    if model.exits is None or model.classifier.device.type != "cpu" or not texts:
        logits = {task: own.numpy() for task, own in compute_logits(model, texts).items()}
        return Outputs(logits, all_layers(model, len(texts)))
    answer = model.exits.answer
    with torch.inference_mode():
        batches = _batches(texts, model.classifier.device)
        found = [answer(model.classifier, batch, model.calibration) for batch in batches]
    logits = {}
    for task in model.classifier.tasks:
        logits[task] = torch.cat([own[task] for own, _ in found]).float().numpy()
    return Outputs(logits, torch.cat([layers for _, layers in found]).numpy())


def all_layers(model: Model, n_texts: int) -> NDArray[np.int64] | None:
    """The layers of texts that all go to the end; None for a model without exits."""
    if model.exits is None:
        return None
    return np.full(n_texts, len(model.classifier.encoder.spec.walk), dtype=np.int64)


def compute_logits(
    model: Model, texts: Sequence[Pieces], *, between: Callable[[], None] = lambda: None
) -> dict[str, Tensor]:
    """{task: (text, class)} of the whole model, on the CPU, computed where the model is.

    between: called before every batch; may raise to end the work.
    """
    import torch

    tasks = model.classifier.tasks
    if not texts:
        return {name: torch.empty(0, task.n_outputs) for name, task in tasks.items()}
    parts: dict[str, list[Tensor]] = {name: [] for name in tasks}
    with torch.inference_mode():
        for batch in _batches(texts, model.classifier.device):
            between()
            for name, logits in model.classifier(batch).items():
                parts[name].append(logits.float().cpu())
    return {name: torch.cat(logits) for name, logits in parts.items()}


def _batches(texts: Sequence[Pieces], device: torch.device) -> Iterator[Batch]:
    from litotes.text.packing import batches_without_gradients, pack

    for places in batches_without_gradients([len(text.ids) for text in texts], device):
        yield pack([texts[place] for place in places], device=device)


def to_answers(
    logits: NDArray[Any],
    task: Task,
    calibration: Calibration,
    *,
    label_sets: LabelSets | None = None,
    variety: str | None = None,
) -> list[Answer]:
    """Label and probabilities of every text, or the number. logits: (text, class)

    label_sets: gives the labels that are possible as well. variety: that of all texts, if known.
    """
    if task.is_regression:
        return [Answer(value, None) for value in logits[:, 0].tolist()]
    if task.multi_label:
        return to_several_answers(logits, task, calibration)
    places, probabilities = calibration.apply(logits)
    possible: list[tuple[str, ...]] | list[None] = [None] * len(logits)
    if label_sets is not None:
        shares = label_shares(probabilities, calibration.threshold)
        possible = find_labels(shares, task.labels, label_sets.bound(variety).least)
    answers = []
    for place, own, labels in zip(places.tolist(), probabilities.tolist(), possible, strict=True):
        by_label = dict(zip(task.labels, own, strict=True))
        answers.append(Answer(task.labels[place], own[place], by_label, labels))
    return answers
