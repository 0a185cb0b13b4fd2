"""Texts in, labels out: the one way every consumer asks a model, by torch or by ONNX Runtime."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from litotes.core.device import choose_device, is_cpu
from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick, unknown_name
from litotes.core.values import Answer, Prediction, Task
from litotes.model.calibration import Calibration
from litotes.model.folder import ModelFolder, open_model, read_files
from litotes.model.inference import to_answers
from litotes.prediction.chunks import read_chunks
from litotes.prediction.frames import add_predictions
from litotes.runtime.onnx_runtime import OnnxRuntime, has_export, has_onnxruntime
from litotes.runtime.runtime import Runtime
from litotes.text.tokenizer import Pieces

if TYPE_CHECKING:
    from litotes.explanation.explanation import Explanation
    from litotes.model.checkpoint import Model

RUNTIMES = ("torch", "onnx")


@dataclass(frozen=True)
class TokenizedText:
    """A text and its pieces, once for each model that reads it."""

    text: str
    pieces: tuple[Pieces, ...]

    @property
    def n_pieces(self) -> int:
        return sum(len(own.ids) for own in self.pieces)

    @property
    def is_truncated(self) -> bool:
        return any(own.truncated for own in self.pieces)

    @property
    def is_unreadable(self) -> bool:
        return any(own.unreadable for own in self.pieces)


class Predictor:
    """One model ready to answer, or several that each answer tasks of their own.

    notes: what the user should know about how it is run.

    >>> predictor = Predictor.load("builtin")                            # doctest: +SKIP
    >>> predictor.predict(["Lovely. Another delay."])[0].answers["sarcasm"].label  # doctest: +SKIP
    'sarcastic'
    """

    def __init__(
        self, *models: Model | Runtime, device: str | None = None, notes: Sequence[str] = ()
    ) -> None:
        self.runtimes = [_runtime(model, device) for model in models]
        self.notes = tuple(notes)
        self.tasks: dict[str, Task] = {}
        for runtime in self.runtimes:
            for name in runtime.tasks.keys() & self.tasks.keys():
                raise UserError(
                    f"Two of the models answer {name}: take one of them out, so that there is one"
                    " answer."
                )
            self.tasks |= runtime.tasks

    @classmethod
    def load(
        cls,
        *models: str | Path | ModelFolder,
        device: str | None = None,
        runtime: str | None = None,
        n_cores: int | None = None,
    ) -> Predictor:
        """models: folders, or names of built-in models.

        runtime: torch or onnx; None: onnx on a CPU where every folder has an export, else torch.

        n_cores: how many it may keep busy, None: all. By torch this holds for everything that the
        process computes.
        """
        folders: list[ModelFolder] = []
        for model in models:
            folders += open_model(model).models
        chosen, notes = choose_runtime(folders, device, runtime)
        for folder in folders:
            notes += folder.notes
        if chosen == "onnx":
            return cls(*(OnnxRuntime(one, n_workers=n_cores) for one in folders), notes=notes)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_files, folders)  # while torch is imported
            import torch

            from litotes.model.checkpoint import load_model
        if n_cores is not None:
            torch.set_num_threads(n_cores)
        loaded = [load_model(folder, files=reading.result()) for folder in folders]
        return cls(*loaded, device=device, notes=notes)

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a sequence of strings
        self, texts: str, *, pairs: str | None = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, texts: Sequence[str], *, pairs: Sequence[str | None] | None = None
    ) -> list[Prediction]: ...

    def predict(
        self, texts: str | Sequence[str], *, pairs: str | Sequence[str | None] | None = None
    ) -> Prediction | list[Prediction]:
        """A prediction per text, in order; of one text that is not in a list, its prediction."""
        if isinstance(texts, str):
            if not isinstance(pairs, str | None):
                raise UserError("One text has one pair: give both as strings, or both in lists.")
            return self.answer(self.tokenize([texts], [pairs]))[0]
        if isinstance(pairs, str):
            raise UserError("Several texts have several pairs: give them in a list.")
        return self.answer(self.tokenize(texts, pairs))

    def _predict(
        self, texts: Sequence[str], pairs: Sequence[str | None], *, first: int
    ) -> list[Prediction]:
        """first: the number of the first text, for error messages."""
        return self.answer(self.tokenize(texts, pairs, first=first))

    def tokenize(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None = None, *, first: int = 1
    ) -> list[TokenizedText]:
        """The texts, checked and cut into pieces; `answer` does the rest of `predict`.

        first: the number of the first text, for error messages.
        """
        pairs = pairs or [None] * len(texts)
        _check_texts(texts, pairs, first=first)
        by_model = [runtime.tokenizer.encode(texts, pairs) for runtime in self.runtimes]
        return [TokenizedText(*own) for own in zip(texts, zip(*by_model, strict=True), strict=True)]

    def answer(self, texts: Sequence[TokenizedText]) -> list[Prediction]:
        """A prediction per text, in order."""
        answers: dict[str, list[Answer]] = {}
        for number, runtime in enumerate(self.runtimes):
            pieces = [text.pieces[number] for text in texts]
            for name, logits in runtime.logits(pieces).items():
                calibration = runtime.calibration.get(name, Calibration())
                answers[name] = to_answers(logits, self.tasks[name], calibration)
        predictions = []
        for place, text in enumerate(texts):
            own = {name: answers[name][place] for name in self.tasks}
            predictions.append(Prediction(text.text, own, text.is_truncated, text.is_unreadable))
        return predictions

    def labels_and_probabilities(
        self, texts: Sequence[str]
    ) -> tuple[dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]], int]:
        """The labels and probabilities of every classification task, and how many texts are
        unreadable.

        Labels as places in `Task.labels` (text,); probabilities of all of them (text, class).
        """
        _check_texts(texts, [None] * len(texts), first=1)
        found = {}
        unreadable = set()
        for runtime in self.runtimes:
            pieces = runtime.tokenizer.encode(texts)
            unreadable |= {place for place, read in enumerate(pieces) if read.unreadable}
            for name, logits in runtime.logits(pieces).items():
                if not self.tasks[name].is_regression:
                    found[name] = runtime.calibration.get(name, Calibration()).apply(logits)
        return found, len(unreadable)

    def stream(self, texts: Iterable[str | tuple[str, str]]) -> Iterator[Prediction]:
        """Predictions for any number of texts, or (text, pair) tuples, in order.

        Memory stays constant. While some texts are computed, the next ones are read and cut into
        pieces, so that no core waits. When a text cannot be read, those before it come first.
        """
        under_way: deque[Future[list[Prediction]]] = deque()
        pool = ThreadPoolExecutor(2, thread_name_prefix="litotes-stream")
        try:
            for chunk in read_chunks(texts):
                if chunk.texts:
                    under_way.append(
                        pool.submit(self._predict, chunk.texts, chunk.pairs, first=chunk.first)
                    )
                # one chunk stays under way, so that the pool is never idle
                while len(under_way) > 1 or (under_way and under_way[0].done()):
                    yield from under_way.popleft().result()
            while under_way:
                yield from under_way.popleft().result()
            if chunk.failure is not None:  # only the last one has a failure
                raise chunk.failure
        finally:
            pool.shutdown(cancel_futures=True)

    def map_batches(self, batch: Any, *, column: str = "text", pair: str | None = None) -> Any:
        """The batch with more columns: `sentiment`, `sentiment_probability`, …, `truncated`,
        `unreadable`.

        batch: a pandas DataFrame, a pyarrow Table or RecordBatch, or columns by name (arrays or
        lists); the same kind comes back. Spark, Dask and Ray Data ask for such a function; what can
        be sent to their workers is a `BatchPredictor`.
        """
        return add_predictions(batch, self._predict_all, self.tasks, column=column, pair=pair)

    def _predict_all(self, texts: list[str], pairs: list[str] | None) -> list[Prediction]:
        return list(self.stream(texts if pairs is None else zip(texts, pairs, strict=True)))

    def explain(
        self,
        text: str,
        *,
        pair: str | None = None,
        task: str | None = None,
        method: str | None = None,
        methods: Sequence[str] | None = None,
        faithfulness: bool = True,
        watch: Watch = ignore_progress,
    ) -> Explanation:
        """Why the model answers as it does, in torch and float32.

        One task at a time: the one named, or the first of `tasks`. A text that is too long is
        explained as far as it was read.

        method: the one to show first; None: occlusion. methods: the others; None: all of `METHODS`.
        faithfulness: measures each method by removing words, which takes most of the time.
        """
        from litotes.explanation.explain import METHOD, explain

        asked = pick(self.tasks, next(iter(self.tasks)) if task is None else task, "task")
        if pair is not None and not pair.strip():
            raise UserError("The pair is empty: leave it out, or give its text.")
        to_torch = [runtime.to_torch() for runtime in self.runtimes]
        # the answers of the very model that is explained
        answers = Predictor(*to_torch).predict([text], pairs=[pair])[0].answers
        model = next(runtime.model() for runtime in to_torch if asked.name in runtime.tasks)
        (read,) = model.tokenizer.read([text], [pair])
        return explain(
            model,
            read,
            answers,
            asked,
            method=method or METHOD,
            methods=methods,
            is_tested=faithfulness,
            watch=watch,
        )

    def describe(self) -> list[str]:
        """What computes the answers, a sentence for each model."""
        return [f"{', '.join(runtime.tasks)}: {runtime.describe()}" for runtime in self.runtimes]


def choose_runtime(
    folders: Sequence[ModelFolder], device: str | None, runtime: str | None
) -> tuple[str, list[str]]:
    """One runtime for all these model folders, and what the user should know about the choice."""
    if runtime is not None and runtime not in RUNTIMES:
        raise UserError(unknown_name(runtime, RUNTIMES, "runtime"))
    if runtime == "onnx" and device not in (None, "cpu"):
        raise UserError(
            "The ONNX runtime computes on the CPU: leave --device out, or use --runtime torch."
        )
    if runtime is not None:
        return runtime, []
    exported = [folder for folder in folders if has_export(folder)]
    if not exported or not is_cpu(device):
        return "torch", []
    if len(exported) < len(folders):
        missing = next(folder for folder in folders if folder not in exported)
        return "torch", [
            f"Run by torch: {missing} has no export. Make it with `litotes export --model"
            f" {missing}`."
        ]
    if not has_onnxruntime():
        return "torch", [
            "Run by torch, although there is an export: `pip install litotes[onnx]` makes it"
            " faster."
        ]
    return "onnx", []


def _runtime(model: Model | Runtime, device: str | None) -> Runtime:
    if isinstance(model, Runtime):
        return model
    from litotes.runtime.torch_runtime import TorchRuntime

    return TorchRuntime(model, choose_device(device))


def _check_texts(texts: Sequence[str], pairs: Sequence[str | None], *, first: int) -> None:
    """first: the number of the first text, for error messages."""
    for number, (text, pair) in enumerate(zip(texts, pairs, strict=True), start=first):
        if not isinstance(text, str) or not isinstance(pair, str | None):
            found = pair if isinstance(text, str) else text
            raise UserError(
                f"Text {number} is {found!r:.60} ({type(found).__name__}), not a string. Turn it"
                " into one, or take it out."
            )
        if not text.strip():
            raise UserError(f"Text {number} is empty; there is nothing to label.")
        if any("\ud800" <= char <= "\udfff" for char in text + (pair or "")):
            raise UserError(
                f"Text {number} holds bytes that are not UTF-8. Save or type it as UTF-8."
            )
