"""Texts of many requests, computed together: while one batch is computed, the next ones gather.

Nobody waits for company.

    request of n texts → takes n of one budget → batches of one model's texts, the oldest first →
    answers, back in each request's order

One request fills at most half a batch while others wait, so that a request of many texts does not
hold up those behind it, and is not
held up by them either: nothing overtakes more than that.

The queue is full when its texts would wait longer than `queue_seconds` at the speed at which texts
have lately been computed.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from litotes.core.values import Prediction
from litotes.predict.predictor import Predictor
from litotes.service.metrics import Metrics
from litotes.service.settings import ServiceSettings
from litotes.service.worker import Worker

_INITIAL_SPEED = 100.0
"""Texts a second, until a batch has been measured."""
_SPEED_WINDOW = 64
"""Texts whose speed counts: enough to even out, few enough to follow a change within a second or
two.
"""
_BATCH_SECONDS, _FEWEST = 0.2, 4
"""A batch of a slow model is made small, so that who comes next does not wait long for its end; a
few texts are always worth it.
"""


class QueueFull(Exception):
    """There is no room for these texts now. seconds: until there may be."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds


class Job:
    """The texts of one request on their way. deadline: in `time.monotonic()`; whoever cancels the
    future is not computed.
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
        """Nobody waits for it any more."""
        return self.future.done() or time.monotonic() > self.deadline

    def answer(self, place: int, prediction: Prediction) -> None:
        self._answers[place] = prediction
        if len(self._answers) == len(self.texts):
            with suppress(InvalidStateError):  # cancelled this moment
                self.future.set_result([self._answers[number] for number in range(len(self.texts))])

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


Batch = list[tuple[Job, int]]
"""Texts by their job and their place in it."""


class Batcher(Worker[Batch]):
    """One thread that computes what requests, from any thread, hand in."""

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
        most = min(self.speed * settings.queue_seconds, settings.queue_texts)
        return self.n_waiting >= max(most, 1) or self._n_characters >= settings.queue_characters

    @property
    def retry_after(self) -> int:
        """Until what waits now has been computed: whole seconds, from 1."""
        return max(1, min(60, math.ceil(self.n_waiting / self.speed)))

    def submit(self, predictor: Predictor, texts: Sequence[str], deadline: float) -> Job:
        """The job whose future will hold an answer per text; no room: `QueueFull`."""
        job = Job(predictor, texts, deadline)
        with self._changed:
            if (
                self._is_closed
                or self.is_full
                or self.n_waiting + len(texts) > self._settings.queue_texts
            ):
                raise QueueFull(self.retry_after)
            self._jobs.append(job)
            self.n_waiting += len(texts)
            self._n_characters += sum(map(len, texts))
            self._wake()
        return job

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """What still waits is told so."""
        with self._changed:
            for job in self._jobs:
                job.fail(error())

    def _run_task(self, batch: Batch) -> None:
        began = time.perf_counter()
        self._compute(batch)
        self._measure(len(batch), time.perf_counter() - began)

    def _next_task(self) -> Batch | None:
        """Texts of the oldest job's model: at first half a batch of each job, then whatever has
        room.
        """
        self._drop_abandoned()
        batch: Batch = []
        most = min(self._settings.batch_texts, max(round(self.speed * _BATCH_SECONDS), _FEWEST))
        for share in (max(most // 2, 1), most):
            for job in self._jobs:
                if job.predictor is self._jobs[0].predictor:
                    n = min(job.n_remaining, share, most - len(batch))
                    batch += [
                        (job, place) for place in range(job.n_dispatched, job.n_dispatched + n)
                    ]
                    self._take(job, n)
                if len(batch) == most:
                    break
        self._jobs = deque(job for job in self._jobs if job.n_remaining)
        return batch or None

    def _drop_abandoned(self) -> None:
        for job in self._jobs:
            if job.is_abandoned:
                self._take(job, job.n_remaining)
        self._jobs = deque(job for job in self._jobs if job.n_remaining)

    def _take(self, job: Job, n: int) -> None:
        """Out of the budget."""
        self._n_characters -= sum(map(len, job.texts[job.n_dispatched : job.n_dispatched + n]))
        self.n_waiting -= n
        job.n_dispatched += n

    def _compute(self, batch: Batch) -> None:
        predictor = batch[0][0].predictor
        try:
            predictions = predictor.predict([job.texts[place] for job, place in batch])
        except Exception as error:  # one text's fault must not be another's
            if len(batch) == 1:
                batch[0][0].fail(error)
            else:
                for one in batch:
                    if not one[0].is_abandoned:
                        self._compute([one])
            return
        for (job, place), prediction in zip(batch, predictions, strict=True):
            job.answer(place, prediction)
        self._metrics.texts.inc(len(batch))
        self._metrics.truncated.inc(sum(prediction.truncated for prediction in predictions))

    def _measure(self, n: int, seconds: float) -> None:
        weight = n / (n + _SPEED_WINDOW)
        self.speed += weight * (n / max(seconds, 1e-6) - self.speed)
        self._metrics.batch_texts.observe(n)
        self._metrics.batch_seconds.observe(seconds)
