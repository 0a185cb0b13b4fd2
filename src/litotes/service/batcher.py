"""Computes the texts of many requests together: while one batch is computed, the next one gathers.

A text never waits for a batch to fill up.

    request of n texts → takes n of one budget → batches of one model's texts, the oldest first →
    answers, back in each request's order

While others wait, one request fills at most half a batch: a request of many texts does not hold up
those behind it, and they do not hold it up either.

The queue is full when its texts would wait longer than `queue_seconds` at the speed of the last
batches.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from litotes.core.values import Prediction
from litotes.prediction.predictor import Predictor
from litotes.service.metrics import Metrics
from litotes.service.settings import ServiceSettings
from litotes.service.worker import Worker

_INITIAL_SPEED = 100.0
"""Texts a second, until a batch has been measured."""
_SPEED_WINDOW = 64
"""Texts over which the speed is averaged: enough to even out, few enough to follow a change within
a second or two.
"""
_BATCH_SECONDS, _MIN_BATCH_TEXTS = 0.2, 4
"""Batches of a slow model are small, so that the next request does not wait long for the end of
one; but a batch always takes a few texts.
"""


class QueueFull(Exception):
    """The queue has no room for these texts now. seconds: until it may have."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds


class Job:
    """The texts of one request.

    deadline: on the clock of `time.monotonic()`. A job whose future is cancelled is not computed.
    """

    def __init__(self, predictor: Predictor, texts: Sequence[str], deadline: float) -> None:
        self.predictor, self.texts, self.deadline = predictor, texts, deadline
        self.future: Future[list[Prediction]] = Future()
        self.n_dispatched = 0
        self._answers: dict[int, Prediction] = {}

    @property
    def n_remaining(self) -> int:
        return len(self.texts) - self.n_dispatched

    @property
    def is_abandoned(self) -> bool:
        """Whether no client waits for it any more."""
        return self.future.done() or time.monotonic() > self.deadline

    def answer(self, place: int, prediction: Prediction) -> None:
        self._answers[place] = prediction
        if len(self._answers) == len(self.texts):
            with suppress(InvalidStateError):  # cancelled at this very moment
                in_order = [self._answers[place] for place in range(len(self.texts))]
                self.future.set_result(in_order)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


Batch = list[tuple[Job, int]]
"""Texts by their job and their place in it."""


class Batcher(Worker[Batch]):
    """One thread that computes the texts submitted from any thread."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        super().__init__("litotes-batches")
        self._settings, self._metrics = settings, metrics
        self._jobs: deque[Job] = deque()
        self.n_waiting = 0
        self._n_characters = 0
        self.speed = _INITIAL_SPEED

    @property
    def is_full(self) -> bool:
        settings = self._settings
        n_in_time = self.speed * settings.queue_seconds
        max_waiting = max(min(n_in_time, settings.queue_texts), 1)
        has_too_many_characters = self._n_characters >= settings.queue_characters
        return self.n_waiting >= max_waiting or has_too_many_characters

    @property
    def retry_after(self) -> int:
        """Whole seconds, from 1, until the texts that wait now have been computed."""
        return max(1, min(60, math.ceil(self.n_waiting / self.speed)))

    def submit(self, predictor: Predictor, texts: Sequence[str], deadline: float) -> Job:
        """The job whose future will hold a prediction for each text; may raise `QueueFull`."""
        job = Job(predictor, texts, deadline)
        with self._changed:
            has_room = self.n_waiting + len(texts) <= self._settings.queue_texts
            if self._is_closed or self.is_full or not has_room:
                raise QueueFull(self.retry_after)
            self._jobs.append(job)
            self.n_waiting += len(texts)
            self._n_characters += sum(map(len, texts))
            self._wake()
        return job

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Ends every job that still waits with this error."""
        with self._changed:
            for job in self._jobs:
                job.fail(error())

    def _run_task(self, batch: Batch) -> None:
        began = time.perf_counter()
        self._compute(batch)
        self._measure(len(batch), time.perf_counter() - began)

    def _next_task(self) -> Batch | None:
        """A batch of texts for the oldest job's model.

        At first it takes at most half a batch from each job, then whatever has room.
        """
        self._drop_abandoned()
        if not self._jobs:
            return None
        predictor, max_texts = self._jobs[0].predictor, self._max_batch_texts
        batch: Batch = []
        for max_share in (max(max_texts // 2, 1), max_texts):
            for job in self._jobs:
                n_free = max_texts - len(batch)
                if not n_free:
                    break
                if job.predictor is predictor:
                    batch += self._dispatch(job, min(job.n_remaining, max_share, n_free))
        self._drop_dispatched()
        return batch

    @property
    def _max_batch_texts(self) -> int:
        n_in_time = max(round(self.speed * _BATCH_SECONDS), _MIN_BATCH_TEXTS)
        return min(self._settings.batch_texts, n_in_time)

    def _dispatch(self, job: Job, n: int) -> Batch:
        """Takes the next n texts of the job out of the queue."""
        places = range(job.n_dispatched, job.n_dispatched + n)
        self._n_characters -= sum(len(job.texts[place]) for place in places)
        self.n_waiting -= n
        job.n_dispatched += n
        return [(job, place) for place in places]

    def _drop_abandoned(self) -> None:
        for job in self._jobs:
            if job.is_abandoned:
                self._dispatch(job, job.n_remaining)
        self._drop_dispatched()

    def _drop_dispatched(self) -> None:
        self._jobs = deque(job for job in self._jobs if job.n_remaining)

    def _compute(self, batch: Batch) -> None:
        predictor = batch[0][0].predictor
        texts = [job.texts[place] for job, place in batch]
        try:
            predictions = predictor.predict(texts)
        except Exception as error:
            self._compute_one_by_one(batch, error)
            return
        for (job, place), prediction in zip(batch, predictions, strict=True):
            job.answer(place, prediction)
        self._metrics.texts.inc(len(batch))
        self._metrics.truncated.inc(sum(prediction.truncated for prediction in predictions))
        self._metrics.unreadable.inc(sum(prediction.unreadable for prediction in predictions))

    def _compute_one_by_one(self, batch: Batch, error: Exception) -> None:
        """After an error: the text that causes it fails its own job and no other."""
        if len(batch) == 1:
            batch[0][0].fail(error)
            return
        for job, place in batch:
            if not job.is_abandoned:
                self._compute([(job, place)])

    def _measure(self, n: int, seconds: float) -> None:
        weight = n / (n + _SPEED_WINDOW)
        self.speed += weight * (n / max(seconds, 1e-6) - self.speed)
        self._metrics.batch_texts.observe(n)
        self._metrics.batch_seconds.observe(seconds)
