"""Pieces in, logits out, and what logits answer: every consumer asks a model this way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from litotes.core.values import Answer, Task
from litotes.model.calibration import Calibration
from litotes.text.tokenizer import Pieces

if TYPE_CHECKING:  # an exported model answers without torch, which takes seconds to import
    import torch
    from torch import Tensor

    from litotes.model.checkpoint import Model
    from litotes.text.batch import Batch


def compute_logits(
    model: Model, texts: Sequence[Pieces], *, between: Callable[[], None] = lambda: None
) -> dict[str, Tensor]:
    """{task: (text, class)}, on the CPU, computed where the model is.

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


def to_answers(logits: NDArray[Any], task: Task, calibration: Calibration) -> list[Answer]:
    """Label and probabilities of every text, or the number. logits: (text, class)"""
    if task.is_regression:
        return [Answer(value, None) for value in logits[:, 0].tolist()]
    places, probabilities = calibration.apply(logits)
    answers = []
    for place, shares in zip(places.tolist(), probabilities.tolist(), strict=True):
        by_label = dict(zip(task.labels, shares, strict=True))
        answers.append(Answer(task.labels[place], shares[place], by_label))
    return answers
