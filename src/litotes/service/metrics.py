"""The metrics of one service, in a registry of their own.

Labels come from fixed tables, never from a request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64)
_PIECES = (16, 32, 64, 128, 256, 512, 1024, 2048)


class Metrics:
    """/metrics lists them in the order in which they are made here."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._add_requests()
        self._add_texts()
        self._add_queues()
        self._model = Info(
            "litotes_model", "A model that is served.", ["name", "runtime"], registry=self.registry
        )
        # cached: finding the child of a label takes longer than counting
        self._problem_counter = cache(self._problems.labels)
        self._request_metrics = cache(self._find_request_metrics)

    def _add_requests(self) -> None:
        registry = self.registry
        self._requests = Counter(
            "litotes_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "litotes_request_seconds",
            "From request to answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._problems = Counter(
            "litotes_refused",
            "Requests answered with a problem, by its name.",
            ["problem"],
            registry=registry,
        )
        self.lost_lines = Counter(
            "litotes_lost_log_lines", "Log lines that could not be written.", registry=registry
        )
        self.in_flight = Gauge(
            "litotes_requests_in_flight", "Requests being answered.", registry=registry
        )

    def _add_texts(self) -> None:
        registry = self.registry
        self.texts = Counter("litotes_texts", "Texts answered.", registry=registry)
        self.bad_texts = Counter(
            "litotes_bad_texts", "Texts with a problem of their own.", registry=registry
        )
        self.truncated = Counter(
            "litotes_truncated_texts", "Texts longer than the model reads.", registry=registry
        )
        self.unreadable = Counter(
            "litotes_unreadable_texts",
            "Texts of which the model knows no part.",
            registry=registry,
        )
        self.batch_texts = Histogram(
            "litotes_batch_texts", "Texts computed together.", buckets=_TEXTS, registry=registry
        )
        self.batch_pieces = Histogram(
            "litotes_batch_pieces", "Pieces computed together.", buckets=_PIECES, registry=registry
        )
        self.batch_seconds = Histogram(
            "litotes_batch_seconds", "To compute a batch.", buckets=_SECONDS, registry=registry
        )

    def _add_queues(self) -> None:
        registry = self.registry
        self._queue = Gauge("litotes_queue_texts", "Texts that wait.", registry=registry)
        self._speed = Gauge(
            "litotes_pieces_per_second",
            "Pieces a second while computing, lately.",
            registry=registry,
        )
        self._explanations = Gauge(
            "litotes_queue_explanations", "Explanations that wait.", registry=registry
        )

    def read_queues_from(
        self,
        *,
        queue: Callable[[], float],
        speed: Callable[[], float],
        explanations: Callable[[], float],
    ) -> None:
        """These gauges are read when /metrics is requested, not kept up to date."""
        self._queue.set_function(queue)
        self._speed.set_function(speed)
        self._explanations.set_function(explanations)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        counter, histogram = self._request_metrics(route, status)
        counter.inc()
        histogram.observe(seconds)

    def count_problem(self, name: str) -> None:
        self._problem_counter(name).inc()

    def add_model(self, name: str, runtime: str, tasks: str) -> None:
        self._model.labels(name, runtime).info({"tasks": tasks})

    def render(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self.registry)

    def _find_request_metrics(self, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(route, str(status)), self._seconds.labels(route)
