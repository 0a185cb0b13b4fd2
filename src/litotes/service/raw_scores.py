"""A model that answers one task with its own outputs, as they are before any calibration."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.values import Answer, Prediction
from litotes.prediction.predictor import Predictor, TokenizedText


class RawScores:
    """Answers texts as a predictor does; where that gives probabilities, this gives logits."""

    def __init__(self, predictor: Predictor, task: str) -> None:
        self._task = predictor.tasks[task]
        places = [place for place, own in enumerate(predictor.runtimes) if task in own.tasks]
        (self._place,) = places
        self._runtime = predictor.runtimes[self._place]

    def answer(self, texts: Sequence[TokenizedText]) -> list[Prediction]:
        """A prediction per text, in order."""
        name, labels = self._task.name, self._task.labels or (self._task.name,)
        pieces = [text.pieces[self._place] for text in texts]
        rows = self._runtime.logits(pieces)[name].tolist()  # (text, class)
        predictions = []
        for text, row in zip(texts, rows, strict=True):
            by_label = dict(zip(labels, row, strict=True))
            best = max(by_label, key=by_label.__getitem__)
            answers = {name: Answer(best, None, by_label)}
            marks = text.is_truncated, text.is_unreadable
            predictions.append(Prediction(text.text, answers, *marks))
        return predictions
