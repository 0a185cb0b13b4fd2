"""The models that are served: loaded, warmed up, and described for clients."""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.prediction.predictor import Predictor
from litotes.runtime.torch_runtime import TorchRuntime
from litotes.service.problems import ProblemError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_WARM_UP_TEXTS = (
    "Lovely. Another delay.",
    "Best sausage roll of my life, and the queue was no trouble at all, I would go again tomorrow.",
)


def check_model_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is not a name for a model: use up to 64 letters, digits, dots, dashes and"
            " underscores, with a letter or digit first. Give it one: --model NAME=FOLDER."
        )


def load_models(
    folders: Mapping[str, Path], *, device: str | None, runtime: str | None
) -> dict[str, Predictor]:
    """A predictor for each name, warmed up: what the first request would build has been built."""
    models = {}
    for name, folder in folders.items():
        models[name] = Predictor.load(folder, device=device, runtime=runtime)
    for predictor in models.values():
        predictor.predict(_WARM_UP_TEXTS)
        predictor.explain(_WARM_UP_TEXTS[0], methods=[], faithfulness=False)
    gc.collect()
    gc.freeze()  # the models stay until the end: the collector need not look at them again
    return models


class ServedModels:
    """The models by name; the first is the default."""

    def __init__(self, models: Mapping[str, Predictor]) -> None:
        if not models:
            raise UserError("There is no model to serve: name one.")
        for name in models:
            check_model_name(name)
        self._models = dict(models)
        self.default = next(iter(models))
        self.descriptions = [self._describe(name, predictor) for name, predictor in models.items()]

    def pick(self, name: str | None) -> tuple[str, Predictor]:
        chosen = self.default if name is None else name
        if chosen not in self._models:
            raise ProblemError(
                "unknown-model",
                f"Known: {', '.join(self._models)}. Without `model`, {self.default} answers.",
            )
        return chosen, self._models[chosen]

    def _describe(self, name: str, predictor: Predictor) -> dict[str, Any]:
        """The model as GET /v1/models shows it."""
        runtimes = predictor.runtimes
        is_torch = all(isinstance(runtime, TorchRuntime) for runtime in runtimes)
        layers = [runtime.model().classifier.encoder.spec.n_layers for runtime in runtimes]
        return {
            "name": name,
            "is_default": name == self.default,
            "tasks": {task.name: list(task.labels) for task in predictor.tasks.values()},
            "runtime": "torch" if is_torch else "onnx",
            "about": predictor.describe(),
            "most_pieces": min(runtime.tokenizer.max_pieces for runtime in runtimes),
            "n_layers": max(layers),
        }


def check_task(predictor: Predictor, task: str | None) -> None:
    if task is not None and task not in predictor.tasks:
        raise ProblemError("unknown-task", f"This model answers {', '.join(predictor.tasks)}.")
