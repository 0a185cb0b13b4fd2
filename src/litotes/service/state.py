"""The state of one running service: its models, queues and metrics; loading, ready or stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING

from litotes.prediction.predictor import Predictor
from litotes.service.models import ServedModels
from litotes.service.problems import ProblemError
from litotes.service.queues import LONG_NICENESS, Batcher, Explainer, lower_priority, start_thread
from litotes.service.settings import ServiceSettings
from litotes.service.telemetry import Log, Metrics

if TYPE_CHECKING:
    from litotes.training.tagging.tagger import Tagger

Models = Mapping[str, Predictor] | Callable[[], Mapping[str, Predictor]]


class Service:
    """The state that all parts of the service share. failure: why the models could not be loaded.

    locus: a model of words whose marks are part of every explanation; None: none.
    """

    def __init__(
        self,
        models: Models,
        settings: ServiceSettings,
        load_locus: Callable[[], Tagger] | None = None,
    ) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.log = Log(on_loss=self.metrics["lost_log_lines"].inc)
        self.batcher = Batcher(settings, self.metrics)
        self.explainer = Explainer(settings.queue_explanations)
        self.reading_pool = ThreadPoolExecutor(
            1, "litotes-reading", lower_priority, (LONG_NICENESS,)
        )
        self.metrics["queue_texts"].set_function(lambda: self.batcher.n_waiting)
        self.metrics["pieces_per_second"].set_function(lambda: self.batcher.speed)
        self.metrics["queue_explanations"].set_function(lambda: self.explainer.n_waiting)
        self.is_draining = False
        self.failure: Exception | None = None
        self.locus: Tagger | None = None
        self._load_locus = load_locus
        self._prefix, self._numbers = token_hex(6), count(1)
        self._models: ServedModels | None = None
        self._to_load = models
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
        """A request id, unique across services and restarts."""
        return f"{self._prefix}-{next(self._numbers)}"

    def check_loaded(self) -> None:
        if self._models is None:
            sentence = "Ask again in a second; GET /ready says when."
            raise ProblemError("loading", sentence, Retry_After="1")

    def check_ready(self) -> None:
        if self.is_draining:
            raise draining_error()
        self.check_loaded()

    def start(self) -> None:
        """Loads the models in the background, unless they were given: /live answers at once."""
        if self._models is None:
            start_thread(self._load_models, "litotes-loading")

    def fail_waiting(self) -> None:
        """Answers all requests that still wait with 503, shortly before the drain ends."""
        self.batcher.fail_all(draining_error)
        self.explainer.fail_all(draining_error)

    def close(self) -> None:
        self.batcher.close()
        self.explainer.close()
        self.reading_pool.shutdown(wait=False, cancel_futures=True)
        self.log.close()

    def _load_models(self) -> None:
        try:
            assert callable(self._to_load)
            self._set_models(self._to_load())
        except Exception as error:  # reported by what runs the server
            self.failure = error

    def _set_models(self, models: Mapping[str, Predictor]) -> None:
        if self._load_locus is not None:
            self.locus = self._load_locus()
        served = ServedModels(models)
        for model in served.descriptions:
            self.metrics.add_model(model["name"], model["runtime"], ", ".join(model["tasks"]))
        self.batcher.n_at_once = served.n_at_once
        self._models = served


def draining_error() -> ProblemError:
    sentence = "Ask another server, or this one when it is back."
    return ProblemError("draining", sentence, Retry_After="5")
