"""The models that are served: loaded, warmed up, and described for clients."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.machine import n_cores
from litotes.core.values import Answer, Prediction
from litotes.prediction.answers import known_varieties
from litotes.prediction.onnx_runtime import OnnxRuntime
from litotes.prediction.predictor import Predictor, TokenizedText
from litotes.service.problems import ProblemError

if TYPE_CHECKING:
    from litotes.prediction.torch_runtime import TorchRuntime

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

_WARM_UP_TEXTS = (
    "Lovely. Another delay.",
    "Best sausage roll of my life, and the queue was no trouble at all, I would go again tomorrow.",
)
_N_MEASURED = 5
_WORTHWHILE = 1.5


def check_model_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is not a name for a model: use up to 64 letters, digits, dots, dashes,"
            " underscores and @, with a letter or digit first. Give it one: --model NAME=FOLDER."
        )


def load_models(
    folders: Mapping[str, Path],
    *,
    device: str | None,
    runtime: str | None,
    precision: str | None = None,
) -> dict[str, Predictor]:
    """A predictor for each name, warmed up: what the first request would build has been built.

    Each computes a batch on one core: the batches of several requests are computed side by side.
    """
    models = {}
    for name, folder in folders.items():
        models[name] = Predictor.load(
            folder, device=device, runtime=runtime, precision=precision, n_cores=1
        )
    for predictor in models.values():
        predictor.predict(_WARM_UP_TEXTS)
        predictor.explain(_WARM_UP_TEXTS[0], methods=[], faithfulness=False)
    share_cores(models.values())
    gc.collect()
    gc.freeze()  # the models stay until the end: the collector need not look at them again
    return models


def share_cores(predictors: Iterable[Predictor]) -> None:
    """Lets torch compute a batch on one core and several at the same time, or each on all of them.

    A second core for one text saves little of a small model's time, and costs a multiple of it
    where a neighbour keeps the cores busy: its threads wait for each other. So a batch has one
    core, unless with all of them it is measured to be _WORTHWHILE times as fast.
    """
    on_cpu = [found for predictor in predictors for found in _torch_on_cpu(predictor)]
    n = n_cores()
    if n == 1 or not on_cpu:
        return
    seconds = {}
    for n_threads in (n, 1):
        for _, runtime in on_cpu:
            runtime.use_threads(n_threads, n_at_once=n // n_threads)
        seconds[n_threads] = sum(_measure(predictor) for predictor, _ in on_cpu)
    if seconds[1] >= _WORTHWHILE * seconds[n]:
        for _, runtime in on_cpu:
            runtime.use_threads(n, n_at_once=1)


def _torch_on_cpu(predictor: Predictor) -> list[tuple[Predictor, TorchRuntime]]:
    others = [one for one in predictor.runtimes if not isinstance(one, OnnxRuntime)]
    if not others:  # torch, which takes seconds to import, is not needed
        return []
    from litotes.prediction.torch_runtime import TorchRuntime

    return [(predictor, one) for one in others if isinstance(one, TorchRuntime) and one.is_on_cpu]


def _measure(predictor: Predictor) -> float:
    """Measures the seconds for one text, the median of a few."""
    seconds = []
    for _ in range(_N_MEASURED):
        began = time.perf_counter()
        predictor.predict(_WARM_UP_TEXTS[1:])
        seconds.append(time.perf_counter() - began)
    return median(seconds)


class ServedModels:
    """The models by name; the first is the default."""

    def __init__(self, models: Mapping[str, Predictor]) -> None:
        if not models:
            raise UserError("There is no model to serve: name one.")
        self._models, self._raw_scores = dict(models), dict[tuple[str, str], RawScores]()
        # one for each variety, kept: texts of one predictor are computed together
        self._of_variety: dict[str, dict[str, Predictor]] = {}
        for name, predictor in models.items():
            check_model_name(name)
            varieties = known_varieties(predictor.runtimes)
            self._of_variety[name] = {own: predictor.for_variety(own) for own in varieties}
        runtimes = [runtime for predictor in models.values() for runtime in predictor.runtimes]
        self.n_at_once = min((runtime.n_at_once for runtime in runtimes), default=1)
        self.default = next(iter(models))
        self.descriptions = [self._describe(name, predictor) for name, predictor in models.items()]

    def pick(self, name: str | None, variety: str | None = None) -> tuple[str, Predictor]:
        """variety: that of the texts, where the model was calibrated for it."""
        name = self.default if name is None else name
        if name not in self._models:
            raise ProblemError(
                "unknown-model",
                f"Known: {', '.join(self._models)}. Without `model`, {self.default} answers.",
            )
        if variety is None:
            return name, self._models[name]
        known = self._of_variety[name]
        if variety not in known:
            names = f"Known: {', '.join(known)}" if known else "It was calibrated for none"
            raise ProblemError("unknown-variety", f"{names}. Leave `variety` out for other texts.")
        return name, known[variety]

    def raw_scores(self, name: str, task: str) -> RawScores:
        """A model's outputs for one task; one for each, kept as the varieties are."""
        if (name, task) not in self._raw_scores:
            self._raw_scores.setdefault((name, task), RawScores(self._models[name], task))
        return self._raw_scores[name, task]

    def _describe(self, name: str, predictor: Predictor) -> dict[str, Any]:
        """The model as GET /v1/models shows it."""
        runtimes, tasks = predictor.runtimes, predictor.tasks.values()
        is_onnx = any(isinstance(runtime, OnnxRuntime) for runtime in runtimes)
        described = {
            "name": name,
            "is_default": name == self.default,
            "tasks": {task.name: list(task.labels) for task in tasks},
            "runtime": "onnx" if is_onnx else "torch",
            "about": predictor.describe(),
            "most_pieces": min(runtime.tokenizer.max_pieces for runtime in runtimes),
            "n_layers": max(runtime.n_layers for runtime in runtimes),
            "multi_label": [task.name for task in tasks if task.multi_label],
            "pairs": predictor.takes_pairs,
        }
        coverage = {task.name: task.coverage for task in tasks if task.coverage}
        if coverage:
            described["unsure"] = {"coverage": coverage, "varieties": list(self._of_variety[name])}
        return described


def pick_task(predictor: Predictor, task: str | None) -> str:
    """The task itself, or the model's first."""
    if task is not None and task not in predictor.tasks:
        raise ProblemError("unknown-task", f"This model answers {', '.join(predictor.tasks)}.")
    return task or next(iter(predictor.tasks))


class RawScores:
    """Answers texts as a predictor does, but with one task's logits where that gives
    probabilities: as they are before any calibration.
    """

    def __init__(self, predictor: Predictor, task: str) -> None:
        (self._place,) = (
            place for place, own in enumerate(predictor.runtimes) if task in own.tasks
        )
        self._runtime, self._task = predictor.runtimes[self._place], task
        self._labels = predictor.tasks[task].labels or (task,)

    def answer(self, texts: Sequence[TokenizedText]) -> list[Prediction]:
        """A prediction per text, in order."""
        logits = self._runtime.compute([text.pieces[self._place] for text in texts]).logits
        predictions = []
        for text, row in zip(texts, logits[self._task].tolist(), strict=True):  # (text, class)
            answer = Answer("", None, dict(zip(self._labels, row, strict=True)))
            predictions.append(
                Prediction(text.text, {self._task: answer}, text.is_truncated, text.is_unreadable)
            )
        return predictions
