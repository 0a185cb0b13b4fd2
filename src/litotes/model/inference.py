"""Pieces in, logits out, and what logits answer: every consumer asks a model this way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from litotes.core.values import Answer, Task
from litotes.model.calibration import Calibration
from litotes.text.tokenizer import Pieces

if TYPE_CHECKING:  # an exported model answers without torch, which takes seconds to import
    from torch import Tensor

    from litotes.model.checkpoint import Model


def compute_logits(
    model: Model, texts: Sequence[Pieces], *, between: Callable[[], None] = lambda: None
) -> dict[str, Tensor]:
    """{task: (text, class)}, on the CPU, computed where the model is.

    between: called before every batch; may raise to end the work.
    """
    import torch

    from litotes.text.packing import batches_by_budget, pack

    classifier = model.classifier
    parts: dict[str, list[Tensor]] = {name: [] for name in classifier.tasks}
    with torch.inference_mode():
        for places in batches_by_budget([len(text.ids) for text in texts]):
            between()
            batch = pack([texts[place] for place in places], device=classifier.device)
            for name, logits in classifier(batch).items():
                parts[name].append(logits.float().cpu())
    if not texts:
        return {name: torch.empty(0, task.n_outputs) for name, task in classifier.tasks.items()}
    return {name: torch.cat(logits) for name, logits in parts.items()}


def to_answers(logits: NDArray[Any], task: Task, calibration: Calibration) -> list[Answer]:
    """Label and probability of every text, or the number. logits: (text, class)"""
    if task.is_regression:
        return [Answer(value, None) for value in logits[:, 0].tolist()]
    places, probabilities = calibration.apply(logits)
    chosen = probabilities[range(len(places)), places]
    answers = []
    for place, probability in zip(places.tolist(), chosen.tolist(), strict=True):
        answers.append(Answer(task.labels[place], probability))
    return answers
