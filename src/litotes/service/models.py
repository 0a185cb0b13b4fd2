"""The models that are served: loaded, warmed up, and described for clients."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.machine import n_cores
from litotes.model.runtime import Runtime
from litotes.prediction.answers import known_varieties
from litotes.prediction.onnx_runtime import OnnxRuntime
from litotes.prediction.predictor import Predictor
from litotes.service.problems import ProblemError
from litotes.service.raw_scores import RawScores

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
    predictors = list(predictors)
    runtimes = [runtime for predictor in predictors for runtime in predictor.runtimes]
    if not any(map(_is_torch, runtimes)):
        return
    on_cpu, n = list(_torch_on_cpu(predictors)), n_cores()
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


def _is_torch(runtime: Runtime) -> bool:
    """Asked without importing torch."""
    return not isinstance(runtime, OnnxRuntime)


def _torch_on_cpu(predictors: Iterable[Predictor]) -> Iterator[tuple[Predictor, TorchRuntime]]:
    from litotes.prediction.torch_runtime import TorchRuntime

    for predictor in predictors:
        for runtime in predictor.runtimes:
            if isinstance(runtime, TorchRuntime) and runtime.is_on_cpu:
                yield predictor, runtime


def _measure(predictor: Predictor) -> float:
    """Seconds for one text, the median of a few."""
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
        for name in models:
            check_model_name(name)
        self._models = dict(models)
        # one for each variety, kept: texts of one predictor are computed together
        self._of_variety = {name: _varieties_of(predictor) for name, predictor in models.items()}
        self._raw_scores: dict[tuple[str, str], RawScores] = {}
        runtimes = [runtime for predictor in models.values() for runtime in predictor.runtimes]
        self.n_at_once = min((runtime.n_at_once for runtime in runtimes), default=1)
        self.default = next(iter(models))
        self.descriptions = [self._describe(name, predictor) for name, predictor in models.items()]

    def pick(self, name: str | None, variety: str | None = None) -> tuple[str, Predictor]:
        """variety: that of the texts, where the model was calibrated for it."""
        chosen = self.default if name is None else name
        if chosen not in self._models:
            raise ProblemError(
                "unknown-model",
                f"Known: {', '.join(self._models)}. Without `model`, {self.default} answers.",
            )
        if variety is None:
            return chosen, self._models[chosen]
        known = self._of_variety[chosen]
        if variety not in known:
            names = f"Known: {', '.join(known)}" if known else "It was calibrated for none"
            raise ProblemError("unknown-variety", f"{names}. Leave `variety` out for other texts.")
        return chosen, known[variety]

    def raw_scores(self, name: str, task: str) -> RawScores:
        """A model's outputs for one task; one for each, kept as the varieties are."""
        if (name, task) not in self._raw_scores:
            self._raw_scores.setdefault((name, task), RawScores(self._models[name], task))
        return self._raw_scores[name, task]

    def _describe(self, name: str, predictor: Predictor) -> dict[str, Any]:
        """The model as GET /v1/models shows it."""
        runtimes = predictor.runtimes
        is_torch = all(map(_is_torch, runtimes))
        described = {
            "name": name,
            "is_default": name == self.default,
            "tasks": {task.name: list(task.labels) for task in predictor.tasks.values()},
            "runtime": "torch" if is_torch else "onnx",
            "about": predictor.describe(),
            "most_pieces": min(runtime.tokenizer.max_pieces for runtime in runtimes),
            "n_layers": max(runtime.n_layers for runtime in runtimes),
            "multi_label": [task.name for task in predictor.tasks.values() if task.multi_label],
            "pairs": predictor.takes_pairs,
        }
        coverage = {task.name: task.coverage for task in predictor.tasks.values() if task.coverage}
        if coverage:
            described["unsure"] = {"coverage": coverage, "varieties": list(self._of_variety[name])}
        return described


def _varieties_of(predictor: Predictor) -> dict[str, Predictor]:
    names = known_varieties(predictor.runtimes)
    return {name: predictor.for_variety(name) for name in names}


def check_task(predictor: Predictor, task: str | None) -> None:
    if task is not None and task not in predictor.tasks:
        raise ProblemError("unknown-task", f"This model answers {', '.join(predictor.tasks)}.")
