"""Texts in, labels out: the one way every consumer asks a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.answering import answers_of, logits_of
from litotes.calibration import Calibration
from litotes.checkpoint import Model, load_models
from litotes.device import choose_device
from litotes.errors import UserError
from litotes.flow import Answer, Prediction, Task
from litotes.progress import Watch, unwatched
from litotes.registry import pick

if TYPE_CHECKING:
    from litotes.analysis.explanation import Explanation

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
        for place, (text, pair) in enumerate(zip(texts, pairs or [None] * len(texts), strict=True)):
            if not text.strip():
                raise UserError(f"Text {place + 1} is empty; there is nothing to label.")
            if any("\ud800" <= char <= "\udfff" for char in text + (pair or "")):
                raise UserError(f"Text {place + 1} holds bytes that are not UTF-8. Save or type it as UTF-8.")
        answers: dict[str, list[Answer]] = {}
        truncated = [False] * len(texts)
        for model in self.models:
            pieces = model.tokenizer.encode(texts, pairs)
            truncated = [before or now.truncated for before, now in zip(truncated, pieces, strict=True)]
            for name, logits in logits_of(model, pieces).items():
                answers[name] = answers_of(logits, self.tasks[name], model.calibration.get(name, Calibration()))
        return [Prediction(text, {name: answers[name][place] for name in self.tasks}, truncated[place]) for place, text in enumerate(texts)]

    def stream(self, texts: Iterable[str | tuple[str, str]]) -> Iterator[Prediction]:
        """Predictions for any number of texts, or of texts with their pairs, in constant memory."""
        source = ((text, None) if isinstance(text, str) else text for text in texts)
        while chunk := list(islice(source, _READ_AHEAD)):
            yield from self.predict([text for text, _ in chunk], pairs=[pair for _, pair in chunk])

    def explain(
        self,
        text: str,
        *,
        pair: str | None = None,
        task: str | None = None,
        method: str | None = None,
        methods: Sequence[str] | None = None,
        faithfulness: bool = True,
        watch: Watch = unwatched,
    ) -> Explanation:
        """Why `predict` answers as it does. One task at a time: the one named, or the first of `tasks`.

        method: the one to show first; None: occlusion. methods: those to ask beside it; None: all of `METHODS`.
        faithfulness: measures each by taking words away, which takes most of the time. A text that is too long is explained as it was read.
        """
        from litotes.analysis.explain import METHOD, explain

        asked = pick(self.tasks, next(iter(self.tasks)) if task is None else task, "task")
        if pair is not None and not pair.strip():
            raise UserError("The pair is empty: leave it out, or give its text.")
        answers = self.predict([text], pairs=[pair])[0].answers
        model = next(model for model in self.models if asked.name in model.classifier.tasks)
        (read,) = model.tokenizer.read([text], [pair])
        return explain(model, read, answers, asked, method=method or METHOD, methods=methods, is_tested=faithfulness, watch=watch)
