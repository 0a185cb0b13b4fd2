"""Texts in, labels out: the one way every consumer asks a model, by torch or by ONNX Runtime."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.answering import answers_of
from litotes.calibration import Calibration
from litotes.description import folders_of
from litotes.device import choose_device, is_cpu
from litotes.errors import UserError
from litotes.flow import Answer, Prediction, Task
from litotes.progress import Watch, unwatched
from litotes.registry import pick, unknown
from litotes.runtime.onnx_runtime import OnnxRuntime, has_export, is_installed
from litotes.runtime.runtime import Runtime

if TYPE_CHECKING:
    from litotes.analysis.explanation import Explanation
    from litotes.checkpoint import Model

RUNTIMES = ("torch", "onnx")
_FIRST_CHUNK, _LARGEST_CHUNK = 16, 1024
"""Texts of a stream that are answered together: few at first, so that the first answer comes soon, then many."""


class Predictor:
    """One model ready to answer, or several that each answer tasks of their own. notes: what the user should know about how it is run.

    >>> predictor = Predictor.load("runs/mine")                          # doctest: +SKIP
    >>> predictor.predict(["Lovely. Another delay."])[0].answers["sarcasm"].label  # doctest: +SKIP
    'sarcastic'
    """

    def __init__(self, *models: Model | Runtime, device: str | None = None, notes: Sequence[str] = ()) -> None:
        self.runtimes = [_runtime(model, device) for model in models]
        self.notes = tuple(notes)
        self.tasks: dict[str, Task] = {}
        for runtime in self.runtimes:
            for name in runtime.tasks.keys() & self.tasks.keys():
                raise UserError(f"Two of the models answer {name}: take one of them out, so that there is one answer.")
            self.tasks |= runtime.tasks

    @classmethod
    def load(cls, *folders: str | Path, device: str | None = None, runtime: str | None = None) -> Predictor:
        """runtime: torch or onnx; None: onnx on a CPU where every folder has an export, else torch."""
        parts = [part for folder in folders for part in folders_of(Path(folder))]
        chosen, notes = _chosen(parts, device, runtime)
        if chosen == "onnx":
            return cls(*(OnnxRuntime(part) for part in parts), notes=notes)
        from litotes.checkpoint import load_model

        return cls(*(load_model(part) for part in parts), device=device, notes=notes)

    def predict(self, texts: Sequence[str], *, pairs: Sequence[str | None] | None = None) -> list[Prediction]:
        """A prediction per text, in order."""
        for place, (text, pair) in enumerate(zip(texts, pairs or [None] * len(texts), strict=True)):
            if not text.strip():
                raise UserError(f"Text {place + 1} is empty; there is nothing to label.")
            if any("\ud800" <= char <= "\udfff" for char in text + (pair or "")):
                raise UserError(f"Text {place + 1} holds bytes that are not UTF-8. Save or type it as UTF-8.")
        answers: dict[str, list[Answer]] = {}
        truncated = [False] * len(texts)
        for runtime in self.runtimes:
            pieces = runtime.tokenizer.encode(texts, pairs)
            truncated = [before or now.truncated for before, now in zip(truncated, pieces, strict=True)]
            for name, logits in runtime.logits(pieces).items():
                answers[name] = answers_of(logits, self.tasks[name], runtime.calibration.get(name, Calibration()))
        return [Prediction(text, {name: answers[name][place] for name in self.tasks}, truncated[place]) for place, text in enumerate(texts)]

    def stream(self, texts: Iterable[str | tuple[str, str]]) -> Iterator[Prediction]:
        """Predictions for any number of texts, or of texts with their pairs, in order and in constant memory.

        While some are computed, the next ones are read and cut into pieces, so that no core waits.
        """
        source = ((text, None) if isinstance(text, str) else text for text in texts)
        under_way: deque[Future[list[Prediction]]] = deque()
        size = _FIRST_CHUNK
        with ThreadPoolExecutor(2, thread_name_prefix="litotes-stream") as pool:
            while chunk := list(islice(source, size)):
                under_way.append(pool.submit(self.predict, [text for text, _ in chunk], pairs=[pair for _, pair in chunk]))
                size = min(2 * size, _LARGEST_CHUNK)
                if len(under_way) == 2:
                    yield from under_way.popleft().result()
            while under_way:
                yield from under_way.popleft().result()

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
        runtime = next(runtime for runtime in self.runtimes if asked.name in runtime.tasks)
        (read,) = runtime.tokenizer.read([text], [pair])
        return explain(runtime.model(), read, answers, asked, method=method or METHOD, methods=methods, is_tested=faithfulness, watch=watch)

    def in_words(self) -> list[str]:
        """What computes, a sentence for each model."""
        return [f"{', '.join(runtime.tasks)}: {runtime.in_words()}" for runtime in self.runtimes]


def _chosen(folders: Sequence[Path], device: str | None, runtime: str | None) -> tuple[str, list[str]]:
    """The runtime, and what the user should know about the choice."""
    if runtime is not None and runtime not in RUNTIMES:
        raise UserError(unknown(runtime, RUNTIMES, "runtime"))
    if runtime == "onnx" and not is_cpu(device):
        raise UserError("The ONNX runtime computes on the CPU: leave --device out, or use --runtime torch.")
    if runtime is not None:
        return runtime, []
    exported = [folder for folder in folders if has_export(folder)]
    if not exported or not is_cpu(device):
        return "torch", []
    if len(exported) < len(folders):
        missing = next(folder for folder in folders if folder not in exported)
        return "torch", [f"Run by torch: {missing} has no export. Make it with `litotes export --model {missing}`."]
    if not is_installed():
        return "torch", ["Run by torch, although there is an export: `pip install litotes[onnx]` makes it faster."]
    return "onnx", []


def _runtime(model: Model | Runtime, device: str | None) -> Runtime:
    if isinstance(model, Runtime):
        return model
    from litotes.runtime.torch_runtime import TorchRuntime

    return TorchRuntime(model, choose_device(device))
