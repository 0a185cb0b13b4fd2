"""Predictors that do what a test needs: wait, fail, or write down how they were asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from litotes.core.errors import UserError
from litotes.core.values import Answer, Prediction, Task
from litotes.encoder.tokenizer import Pieces
from litotes.prediction.predictor import TokenizedText


class FakePredictor:
    """Answers with the length of a text.

    A batch waits for `gate`; a text that holds `guilty` is a bug, `wrong` a user's mistake.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.began = threading.Event()
        self.batches: list[list[str]] = []
        self.tasks = {"size": Task("size", ())}
        self.runtimes: list[Any] = []
        self.takes_pairs = False

    def tokenize(self, texts: Sequence[str], pairs: object = None) -> list[TokenizedText]:
        """A piece for each word."""
        return [
            TokenizedText(text, None, (Pieces([1] * len(text.split()), [], truncated=False),))
            for text in texts
        ]

    def answer(self, tokenized: Sequence[TokenizedText]) -> list[Prediction]:
        texts = [one.text for one in tokenized]
        self.batches.append(list(texts))
        self.began.set()
        assert self.gate.wait(20)
        if any("guilty" in text for text in texts):
            raise ValueError(f"cannot read {texts}")
        if any("wrong" in text for text in texts):
            raise UserError("Text 1 is wrong.")
        return [
            Prediction(text, {"size": Answer(float(len(text)), None)}, len(text) > 100)
            for text in texts
        ]

    def describe(self) -> list[str]:
        return ["Counts letters."]
