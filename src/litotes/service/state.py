"""One running service: its models, its queues, its counters, and whether it is loading, ready or
stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from secrets import token_hex

from litotes.predict.predictor import Predictor
from litotes.service.batcher import Batcher
from litotes.service.explainer import Explainer
from litotes.service.logs import Log
from litotes.service.metrics import Metrics
from litotes.service.models import ServedModels
from litotes.service.problems import ProblemError
from litotes.service.settings import ServiceSettings
from litotes.service.worker import start_worker_thread

Models = Mapping[str, Predictor] | Callable[[], Mapping[str, Predictor]]


class Service:
    """What every part of the service shares. failure: why loading did not succeed."""

    def __init__(self, models: Models, settings: ServiceSettings) -> None:
        self.settings, self.metrics, self.log = settings, Metrics(), Log()
        self.batcher = Batcher(settings, self.metrics)
        self.explainer = Explainer(settings.queue_explanations)
        self.metrics.watch(
            queue=lambda: self.batcher.n_waiting,
            speed=lambda: self.batcher.speed,
            explanations=lambda: self.explainer.n_waiting,
        )
        self.is_draining = False
        self._prefix, self._numbers = token_hex(6), count(1)
        self.failure: Exception | None = None
        self._models: ServedModels | None = None
        self._load = models if callable(models) else None
        if not callable(models):
            self._set_models(models)

    @property
    def models(self) -> ServedModels:
        self.check_loaded()
        assert self._models is not None
        return self._models

    @property
    def is_ready(self) -> bool:
        return self._models is not None

    def new_request_id(self) -> str:
        """For a request: unlike any other, of this service or another."""
        return f"{self._prefix}-{next(self._numbers)}"

    def check_loaded(self) -> None:
        if self._models is None:
            raise ProblemError(
                "loading", "Ask again in a second; GET /ready says when.", {"Retry-After": "1"}
            )

    def check_ready(self) -> None:
        if self.is_draining:
            raise draining()
        self.check_loaded()

    def start(self) -> None:
        """Loads in the background, where there is something to load: /live answers from the
        beginning.
        """
        if self._load is not None and self._models is None:
            start_worker_thread(partial(self._load_models, self._load), "litotes-loading")

    def fail_waiting(self) -> None:
        """The time to drain is nearly over: who still waits is told."""
        self.batcher.fail_all(draining)
        self.explainer.fail_all(draining)

    def close(self) -> None:
        self.batcher.close()
        self.explainer.close()
        self.log.close()

    def _load_models(self, load: Callable[[], Mapping[str, Predictor]]) -> None:
        try:
            self._set_models(load())
        except Exception as error:  # told by whoever runs the server
            self.failure = error

    def _set_models(self, models: Mapping[str, Predictor]) -> None:
        served = ServedModels(models)
        for one in served.descriptions:
            self.metrics.model(one["name"], one["runtime"], ", ".join(one["tasks"]))
        self._models = served


def draining() -> ProblemError:
    return ProblemError(
        "draining", "Ask another server, or this one when it is back.", {"Retry-After": "5"}
    )
