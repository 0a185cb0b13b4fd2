"""Texts in, labels out: the one way every consumer asks a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from litotes.checkpoint import Model, load_model
from litotes.data.packing import by_budget, pack
from litotes.data.pieces import Pieces
from litotes.device import choose_device
from litotes.errors import UserError
from litotes.flow import Answer, Prediction, Task

_READ_AHEAD = 512
"""Texts tokenized at once when a stream is predicted."""


class Predictor:
    """A model ready to answer.

    >>> predictor = Predictor.load("runs/mine")                          # doctest: +SKIP
    >>> predictor.predict(["Lovely. Another delay."])[0].answers["sarcasm"].label  # doctest: +SKIP
    'sarcastic'
    """

    def __init__(self, model: Model, *, device: str | None = None) -> None:
        self.model = model
        self.device = choose_device(device)
        self.classifier = model.classifier.to(self.device).eval()

    @classmethod
    def load(cls, folder: str | Path, *, device: str | None = None) -> Predictor:
        return cls(load_model(Path(folder)), device=device)

    @property
    def tasks(self) -> dict[str, Task]:
        return self.classifier.tasks

    def predict(self, texts: Sequence[str], *, pairs: Sequence[str | None] | None = None) -> list[Prediction]:
        """A prediction per text, in order."""
        for place, text in enumerate(texts):
            if not text.strip():
                raise UserError(f"Text {place + 1} is empty; there is nothing to label.")
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise UserError(f"Text {place + 1} holds bytes that are not UTF-8. Save or type it as UTF-8.")
        pieces = self.model.tokenizer.encode(texts, pairs)
        logits = self._logits(pieces)
        answers = {name: _answers(logits[name], task) for name, task in self.tasks.items()}
        return [
            Prediction(text, {name: answers[name][place] for name in answers}, pieces[place].truncated) for place, text in enumerate(texts)
        ]

    def stream(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """Predictions for any number of texts in constant memory."""
        source = iter(texts)
        while chunk := list(islice(source, _READ_AHEAD)):
            yield from self.predict(chunk)

    def _logits(self, pieces: Sequence[Pieces]) -> dict[str, Tensor]:
        parts = []
        with torch.inference_mode():
            for places in by_budget([len(text.ids) for text in pieces]):
                batch = pack([pieces[place] for place in places], device=self.device)
                parts.append({task: logits.float().cpu() for task, logits in self.classifier(batch).items()})
        return {task: torch.cat([part[task] for part in parts]) if parts else torch.empty(0, 1) for task in self.tasks}


def _answers(logits: Tensor, task: Task) -> list[Answer]:
    if task.is_regression:
        return [Answer(value, None) for value in logits.squeeze(-1).tolist()]
    probabilities, places = logits.softmax(-1).max(-1)
    return [Answer(task.labels[place], p) for place, p in zip(places.tolist(), probabilities.tolist(), strict=True)]
