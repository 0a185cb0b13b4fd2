"""Texts in, labels out: the one way every consumer asks a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from litotes.calibration import Calibration
from litotes.checkpoint import Model, load_models
from litotes.data.packing import by_budget, pack
from litotes.data.pieces import Pieces
from litotes.device import choose_device
from litotes.errors import UserError
from litotes.flow import Answer, Prediction, Task

_READ_AHEAD = 512
"""Texts tokenized at once when a stream is predicted."""


class Predictor:
    """One model ready to answer, or several that each answer tasks of their own.

    >>> predictor = Predictor.load("runs/mine")                          # doctest: +SKIP
    >>> predictor.predict(["Lovely. Another delay."])[0].answers["sarcasm"].label  # doctest: +SKIP
    'sarcastic'
    """

    def __init__(self, *models: Model, device: str | None = None) -> None:
        self.models = models
        self.device = choose_device(device)
        self.tasks: dict[str, Task] = {}
        for model in models:
            model.classifier.to(self.device).eval()
            for name in model.classifier.tasks.keys() & self.tasks.keys():
                raise UserError(f"Two of the models answer {name}: take one of them out, so that there is one answer.")
            self.tasks |= model.classifier.tasks

    @classmethod
    def load(cls, *folders: str | Path, device: str | None = None) -> Predictor:
        return cls(*(model for folder in folders for model in load_models(Path(folder))), device=device)

    def predict(self, texts: Sequence[str], *, pairs: Sequence[str | None] | None = None) -> list[Prediction]:
        """A prediction per text, in order."""
        for place, text in enumerate(texts):
            if not text.strip():
                raise UserError(f"Text {place + 1} is empty; there is nothing to label.")
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise UserError(f"Text {place + 1} holds bytes that are not UTF-8. Save or type it as UTF-8.")
        answers: dict[str, list[Answer]] = {}
        truncated = [False] * len(texts)
        for model in self.models:
            pieces = model.tokenizer.encode(texts, pairs)
            truncated = [before or now.truncated for before, now in zip(truncated, pieces, strict=True)]
            for name, logits in self._logits(model, pieces).items():
                answers[name] = _answers(logits, self.tasks[name], model.calibration.get(name, Calibration()))
        return [Prediction(text, {name: answers[name][place] for name in self.tasks}, truncated[place]) for place, text in enumerate(texts)]

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """Predictions for any number of texts in constant memory."""
        source = iter(texts)
        while chunk := list(islice(source, _READ_AHEAD)):
            yield from self.predict(chunk)

    def _logits(self, model: Model, pieces: Sequence[Pieces]) -> dict[str, Tensor]:
        parts = []
        with torch.inference_mode():
            for places in by_budget([len(text.ids) for text in pieces]):
                batch = pack([pieces[place] for place in places], device=self.device)
                parts.append({task: logits.float().cpu() for task, logits in model.classifier(batch).items()})
        tasks = model.classifier.tasks
        return {
            name: torch.cat([part[name] for part in parts]) if parts else torch.empty(0, task.n_outputs) for name, task in tasks.items()
        }


def _answers(logits: Tensor, task: Task, calibration: Calibration) -> list[Answer]:
    if task.is_regression:
        return [Answer(value, None) for value in logits.squeeze(-1).tolist()]
    places, probabilities = calibration.apply(logits.numpy())
    chosen = probabilities[range(len(places)), places]
    return [Answer(task.labels[place], p) for place, p in zip(places.tolist(), chosen.tolist(), strict=True)]
