"""The models that are served: loaded, tried once, and described for clients."""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.predict.predictor import Predictor
from litotes.runtime.torch_runtime import TorchRuntime
from litotes.service.problems import ProblemError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_WARM_UP_TEXTS = (
    "Lovely. Another delay.",
    "Best sausage roll of my life, and the queue was no trouble at all, I would go again tomorrow.",
)


def check_model_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name for a model: up to 64 letters, digits, dots, dashes and"
            " underscores, with a letter or digit first. Give it one: --model NAME=FOLDER."
        )
    return name


def load_models(
    folders: Mapping[str, Path], *, device: str | None, runtime: str | None
) -> dict[str, Predictor]:
    """A predictor for each name, ready: whatever is made at the first question has been made."""
    models = {
        name: Predictor.load(folder, device=device, runtime=runtime)
        for name, folder in folders.items()
    }
    for predictor in models.values():
        predictor.predict(_WARM_UP_TEXTS)
        predictor.explain(_WARM_UP_TEXTS[0], methods=[], faithfulness=False)
    gc.collect()
    gc.freeze()  # what has been loaded stays: the collector need not look at it again
    return models


class ServedModels:
    """The models by name; the first is the default."""

    def __init__(self, models: Mapping[str, Predictor]) -> None:
        if not models:
            raise UserError("There is no model to serve: name one.")
        self._models = {check_model_name(name): predictor for name, predictor in models.items()}
        self.default = next(iter(self._models))
        self.descriptions = [
            self._description(name, predictor) for name, predictor in self._models.items()
        ]

    def pick(self, name: str | None) -> tuple[str, Predictor]:
        chosen = self.default if name is None else name
        if chosen not in self._models:
            raise ProblemError(
                "unknown-model",
                f"Known: {', '.join(self._models)}. Without `model`, {self.default} answers.",
            )
        return chosen, self._models[chosen]

    def _description(self, name: str, predictor: Predictor) -> dict[str, Any]:
        runtimes = predictor.runtimes
        return {
            "name": name,
            "is_default": name == self.default,
            "tasks": {task.name: list(task.labels) for task in predictor.tasks.values()},
            "runtime": (
                "torch"
                if all(isinstance(runtime, TorchRuntime) for runtime in runtimes)
                else "onnx"
            ),
            "about": predictor.in_words(),
            "most_pieces": min(runtime.tokenizer.max_pieces for runtime in runtimes),
            "n_layers": max(
                runtime.model().classifier.encoder.spec.n_layers for runtime in runtimes
            ),
        }


def check_task(predictor: Predictor, task: str | None) -> None:
    if task is not None and task not in predictor.tasks:
        raise ProblemError("unknown-task", f"This model answers {', '.join(predictor.tasks)}.")
